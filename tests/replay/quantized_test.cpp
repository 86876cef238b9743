// The FP8 actions of Programs: ranks that own parts of matrices quantise them as one rank does that owns all; forward
// and backward see what the bytes and scales say; and no action asks for a buffer that may be dead.
#include <cmath>
#include <limits>

#include "replay/quantized_reference.hpp"
#include "tests/catch.hpp"
#include "tests/replay/quantized_cases.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

constexpr Fp8Recipe kRecipes[] = {Fp8Recipe::tensorwise, Fp8Recipe::blockwise, Fp8Recipe::mxfp8};

/// `at` of a rank in which the buffers `dead` are not alive.
BufferAt memory_of(QuantizedRank& rank, std::vector<std::uint32_t> dead = {}) {
  return [&rank, dead](BufferId buffer) {
    REQUIRE(buffer.index < kBuffers);
    for (const std::uint32_t d : dead) REQUIRE(buffer.index != d);
    return rank.at(buffer);
  };
}

std::vector<std::uint32_t> lazy(Fp8Recipe recipe) {
  return recipe == Fp8Recipe::mxfp8 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{kColumnsBuffer};
}

/// Every rank's owned bytes to all others: rows, and columns where `columns`.
void gather(std::vector<QuantizedRank>& ranks, bool columns) {
  for (const QuantizedRank& from : ranks) {
    for (const QuantizedRun& run : from.own.runs) {
      const QuantizedParameter& p = from.program.quantized->parameters[run.quantized];
      for (QuantizedRank& to : ranks) {
        const auto send = [&](std::uint32_t buffer, std::int64_t at) {
          std::copy_n(from.memory[buffer].begin() + at, run.numel.value, to.memory[buffer].begin() + at);
        };
        send(kParamsBuffer, p.row.value + run.first);
        if (columns) send(kColumnsBuffer, p.column.value + run.first);
      }
    }
  }
}

/// A step's worth: both calls on all ranks, the gather, and column-wise copies where the recipe transposes them.
std::vector<QuantizedRank> quantize(Fp8Recipe recipe, std::int64_t count, bool columns = true, bool special = false) {
  std::vector<QuantizedRank> ranks;
  for (std::int64_t rank = 0; rank < count; ++rank) {
    ranks.push_back(quantized_rank(recipe, rank, count, columns, special));
  }
  for (std::size_t call = 0; call < ranks[0].calls.size(); ++call) {
    std::vector<float*> largest;
    for (QuantizedRank& rank : ranks) {
      std::fill(rank.memory[kLargestBuffer].begin(), rank.memory[kLargestBuffer].end(), std::byte{0});
      find_largest_ref(rank.program, rank.calls[call].find,
                       memory_of(rank, {kParamsBuffer, kScalesBuffer, kColumnsBuffer, kStagingBuffer}));
      largest.push_back(reinterpret_cast<float*>(rank.at({kLargestBuffer})));
    }
    largest_maximum_ref(largest, ranks[0].calls[call].largest);
    for (QuantizedRank& rank : ranks) {
      quantize_ref(rank.program, rank.calls[call].quantize, memory_of(rank, lazy(recipe)));
    }
  }
  gather(ranks, recipe == Fp8Recipe::mxfp8);
  for (QuantizedRank& rank : ranks) {
    if (recipe == Fp8Recipe::mxfp8 || !columns) continue;
    make_columns_ref(rank.program, rank.columns, memory_of(rank, {kMastersBuffer, kLargestBuffer}));
  }
  return ranks;
}

std::vector<float> values_of(QuantizedRank& rank, ElementRange range, bool from_columns,
                             std::vector<std::uint32_t> dead = {}) {
  std::vector<float> out(static_cast<std::size_t>(range.numel().value) + 1, -7);
  dead.insert(dead.end(), {kMastersBuffer, kLargestBuffer});
  dequantized_values_ref(rank.program, range, from_columns, memory_of(rank, dead), out.data());
  REQUIRE(out.back() == -7);
  out.pop_back();
  return out;
}

ElementRange all_of(const QuantizedRank& rank) { return {0, rank.plan->buckets.back().end.value}; }

/// Row-wise bytes of a matrix.
std::vector<std::byte> bytes_of_matrix(const QuantizedRank& rank, const QuantizedParameter& p) {
  const auto first = rank.memory[kParamsBuffer].begin() + p.row.value;
  return {first, first + p.rows * p.columns};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

}  // namespace

TEST_CASE("Ranks that share matrices have the bytes and scales of one rank that owns them") {
  for (const Fp8Recipe recipe : kRecipes) {
    for (const bool special : {false, true}) {
      std::vector<QuantizedRank> one = quantize(recipe, 1, true, special);
      for (const std::int64_t count : {2, 3}) {
        for (const QuantizedRank& rank : quantize(recipe, count, true, special)) {
          CAPTURE(static_cast<int>(recipe), special, count);
          CHECK((rank.memory[kScalesBuffer] == one[0].memory[kScalesBuffer]));
          for (std::size_t i = 0; i < 4; ++i) {
            // Row bytes lie elsewhere where buckets are padded to more ranks.
            const auto& p = rank.program.quantized->parameters[i];
            const auto& q = one[0].program.quantized->parameters[i];
            CHECK((bytes_of_matrix(rank, p) == bytes_of_matrix(one[0], q)));
          }
          // Copies and their scales, and nothing between them.
          CHECK((rank.memory[kColumnsBuffer] == one[0].memory[kColumnsBuffer]));
        }
      }
    }
  }
}

TEST_CASE("Forward and backward see masters to E4M3's precision, plain parameters as they are, gaps as 0") {
  for (const Fp8Recipe recipe : kRecipes) {
    std::vector<QuantizedRank> ranks = quantize(recipe, 2);
    QuantizedRank& rank = ranks[1];
    const Plan& plan = *rank.plan;
    const std::vector<float> rows = values_of(rank, all_of(rank), false, lazy(recipe));
    const std::vector<float> columns = values_of(rank, all_of(rank), true);
    if (recipe == Fp8Recipe::mxfp8) {
      CHECK((rows != columns));  // quantised by other blocks
    } else {
      CHECK(same_bits(rows, columns));
    }
    std::size_t seen = 0;  // elements of parameters, and of plain buckets
    for (std::uint32_t n = 0; n < plan.parameters.size(); ++n) {
      const PlanParameter& p = plan.parameters[n];
      const std::int64_t numel = p.quantized ? p.numel().value : plan.buckets[n == 0 ? 0 : 2].numel().value;
      for (std::int64_t e = 0; e < numel; ++e, ++seen) {
        const auto i = static_cast<std::size_t>(p.at.value + e);
        const float master = kernels::fp32_from_bf16(kernels::bf16_from_fp32(master_of(n, e, false)));
        // Half a unit of three bits of mantissa, or of the subnormals' unit 2^-9 where the largest (below 1/4 here, as
        // masters are) is at least 224 after scaling.
        const float bound = p.quantized ? std::max(std::abs(master) / 16, 0.25F / 224 / 1024) : 0;
        REQUIRE(std::abs(rows[i] - master) <= bound);
        REQUIRE(std::abs(columns[i] - master) <= bound);
      }
    }
    std::size_t gaps = 0;
    for (const PlanBucket& bucket : plan.buckets) {
      std::vector<bool> own(static_cast<std::size_t>(bucket.numel().value), !bucket.quantized);
      for (const PlanParameter& p : plan.parameters) {
        const std::int64_t at = p.at.value - bucket.begin.value;
        if (at >= 0 && at < bucket.numel().value) std::fill_n(own.begin() + at, p.numel().value, true);
      }
      for (std::size_t e = 0; e < own.size(); ++e) {
        if (own[e]) continue;
        const auto i = static_cast<std::size_t>(bucket.begin.value) + e;
        REQUIRE((rows[i] == 0 && columns[i] == 0));
        ++gaps;
      }
    }
    REQUIRE(seen + gaps == rows.size());
  }
}

TEST_CASE("Values of any range are the same elements of the whole") {
  std::mt19937 engine(5);
  for (const Fp8Recipe recipe : kRecipes) {
    std::vector<QuantizedRank> ranks = quantize(recipe, 2, true, true);
    for (const bool from_columns : {false, true}) {
      const std::vector<float> whole = values_of(ranks[0], all_of(ranks[0]), from_columns);
      for (int i = 0; i < 60; ++i) {
        std::int64_t begin = engine() % whole.size(), end = engine() % (whole.size() + 1);
        if (begin > end) std::swap(begin, end);
        const std::vector<float> part = values_of(ranks[0], {begin, end}, from_columns);
        REQUIRE(same_bits(part, {whole.begin() + begin, whole.begin() + end}));
      }
    }
  }
}

TEST_CASE("Without column-wise copies backward reads rows, and nothing asks for them") {
  for (const Fp8Recipe recipe : {Fp8Recipe::tensorwise, Fp8Recipe::blockwise}) {
    std::vector<QuantizedRank> ranks = quantize(recipe, 2, false);
    for (QuantizedRank& rank : ranks) {
      CHECK(same_bits(values_of(rank, all_of(rank), true, {kColumnsBuffer}),
                      values_of(rank, all_of(rank), false, {kColumnsBuffer})));
    }
  }
}

TEST_CASE("Owned elements dequantise into the staging buffer in the model's type") {
  for (const Fp8Recipe recipe : kRecipes) {
    std::vector<QuantizedRank> ranks = quantize(recipe, 2, true, true);
    for (QuantizedRank& rank : ranks) {
      const std::vector<float> all = values_of(rank, all_of(rank), false);
      dequantize_ref(rank.program, rank.own, memory_of(rank, {kMastersBuffer, kLargestBuffer, kColumnsBuffer}));
      for (const QuantizedRun& run : rank.own.runs) {
        const auto& p = rank.program.quantized->parameters[run.quantized];
        const std::int64_t at = rank.plan->parameters[p.parameter].at.value + run.first;
        for (std::int64_t i = 0; i < run.numel.value; ++i) {
          std::uint16_t got = 0;
          std::memcpy(&got, rank.at({kStagingBuffer}) + run.master.value + 2 * i, 2);
          REQUIRE(got == kernels::bf16_from_fp32(all[static_cast<std::size_t>(at + i)]));
        }
      }
    }
  }
}

TEST_CASE("A rank that owns nothing of a call has all its scales, and needs no masters") {
  for (const Fp8Recipe recipe : kRecipes) {
    std::vector<QuantizedRank> ranks = quantize(recipe, 1);
    QuantizedRank& rank = ranks[0];
    const auto scales = rank.memory[kScalesBuffer];
    const auto params = rank.memory[kParamsBuffer];
    QuantizedCall& call = rank.calls[1];  // whose largest values are still there
    const auto largest = rank.memory[kLargestBuffer];
    call.find.runs.clear();
    call.quantize.runs.clear();
    find_largest_ref(rank.program, call.find, memory_of(rank, {kMastersBuffer}));
    CHECK((rank.memory[kLargestBuffer] == largest));
    for (const std::size_t i : {2U, 3U}) {
      const QuantizedParameter& p = rank.program.quantized->parameters[i];
      rank.memory[kScalesBuffer][static_cast<std::size_t>(p.row_scales.value)] ^= std::byte{1};
    }
    quantize_ref(rank.program, call.quantize, memory_of(rank, {kMastersBuffer}));
    CHECK((rank.memory[kScalesBuffer] == scales && rank.memory[kParamsBuffer] == params));
  }
}

TEST_CASE("The maximum over members: the largest number, and NaN above infinity") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::bit_cast<float>(0x7fff0000U);
  std::vector<float> a = {1, 0, 2, nan, 0, 7}, b = {0.5F, 0, kInfinity, 1, nan, 7}, c = {3, 1e-40F, 5, kInfinity, 2, 9};
  std::vector<float*> members = {a.data(), b.data(), c.data()};
  largest_maximum_ref(members, Numel{5});
  const std::vector<float> want = {3, 1e-40F, kInfinity, nan, nan};
  for (float* member : members) CHECK(std::memcmp(member, want.data(), 4 * want.size()) == 0);
  CHECK((a[5] == 7 && c[5] == 9));
}
