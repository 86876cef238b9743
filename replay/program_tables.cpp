// A plan's tables: types, buckets, shards, parameters, buffers and streams, before anything is placed by them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string_view>
#include <vector>

#include "models/errors.hpp"
#include "replay/program_compiler.hpp"

namespace ebb::replay {

namespace {

/// Beyond this no offset of any state could overflow: 2^50 elements are a thousand times the largest model.
constexpr std::int64_t kMostElements = std::int64_t{1} << 50;
constexpr Bytes kMostBytes{std::int64_t{1} << 60};

std::string name_of_rank(const Plan& plan) { return fmt::format("rank {}", plan.rank); }

void check_types(const Plan& plan, const Place& place) {
  const Precision& precision = plan.precision;
  const std::string rank = name_of_rank(plan);
  const bool known = precision.fp8 == Fp8Recipe::tensorwise || precision.fp8 == Fp8Recipe::blockwise ||
                     precision.fp8 == Fp8Recipe::mxfp8;
  if ((precision.fp8_param_gather && !known) || precision.fp4_param_gather || precision.params == Dtype::fp8)
    throw InputError(place, rank + ": quantised weights of this recipe are not replayed",
                     "use fp8 tensorwise, blockwise or mxfp8, or gather parameters in bf16");
  if (precision.keeps_remainders())
    throw InputError(place, rank + ": 16-bit remainders of masters are not replayed yet", "set remainders: false");
  if (precision.grads != Dtype::fp32 && precision.grads != Dtype::bf16)
    throw InputError(place, fmt::format("{}: gradients in {} are not replayed yet", rank, name_of(precision.grads)),
                     "use fp32 or bf16");
  for (const Dtype moment : {precision.exp_avg, precision.exp_avg_sq}) {
    if (moment != Dtype::fp32 && moment != Dtype::bf16)
      throw InputError(place, fmt::format("{}: moments in {} are not replayed yet", rank, name_of(moment)),
                       "use fp32 or bf16");
  }
  if (precision.master_bytes() > 0 && precision.master != Dtype::fp32)
    throw InputError(place, fmt::format("{}: masters in {} are not replayed yet", rank, name_of(precision.master)),
                     "use fp32");
}

void check_shards(const Plan& plan, std::int64_t padded, const Place& place) {
  std::vector<std::uint32_t> by_place(plan.shards.size());
  std::iota(by_place.begin(), by_place.end(), 0U);
  const auto at = [&](std::uint32_t i) { return std::pair(plan.shards[i].at.value, plan.shards[i].numel.value); };
  std::sort(by_place.begin(), by_place.end(), [&](std::uint32_t a, std::uint32_t b) { return at(a) < at(b); });
  std::int64_t behind = 0;
  for (const std::uint32_t i : by_place) {
    const PlanShard& shard = plan.shards[i];
    if (shard.at.value < 0 || shard.numel.value < 0 || shard.at.value > padded ||
        shard.numel.value > padded - shard.at.value)
      throw InputError(place, fmt::format("{}: shard {} (\"{}\") lies outside of the {} padded elements",
                                          name_of_rank(plan), i, shard.name, padded));
    if (shard.at.value < behind)
      throw InputError(
          place, fmt::format("{}: shard {} (\"{}\") overlaps the one before it", name_of_rank(plan), i, shard.name));
    behind = shard.at.value + shard.numel.value;
  }
}

/// Parameters one after another among the padded elements, each name once, and shards inside those they are of.
void check_parameters(const Plan& plan, std::int64_t padded, const Place& place) {
  const auto refuse = [&](const std::string& problem) {
    throw InputError(place, fmt::format("{}: {}", name_of_rank(plan), problem), "write the plan again with this ebb");
  };
  std::set<std::string_view> names;
  std::int64_t behind = 0;
  for (std::size_t p = 0; p < plan.parameters.size(); ++p) {
    const PlanParameter& parameter = plan.parameters[p];
    const auto what = [&] { return fmt::format("parameter {} (\"{}\")", p, parameter.name); };
    if (parameter.at.value < behind) refuse(what() + " overlaps the one before it");
    if (parameter.at.value > padded || parameter.numel().value > padded - parameter.at.value)
      refuse(fmt::format("{} lies outside of the {} padded elements", what(), padded));
    if (!names.insert(parameter.name).second) refuse(what() + " has the name of another");
    behind = (parameter.at + parameter.numel()).value;
  }
  for (std::size_t i = 0; i < plan.shards.size() && !plan.parameters.empty(); ++i) {
    const PlanShard& shard = plan.shards[i];
    if (shard.numel.value == 0) continue;
    const PlanParameter& parameter = plan.parameters[shard.parameter];
    if (shard.offset > parameter.numel() || shard.numel > parameter.numel() - shard.offset ||
        shard.at != parameter.at + shard.offset)
      refuse(fmt::format("shard {} (\"{}\") does not lie in its parameter \"{}\"", i, shard.name, parameter.name));
  }
}

}  // namespace

void check_tables(const Plan& plan, const std::string& file) {
  const Place place{.file = file};
  const std::string rank = name_of_rank(plan);
  check_types(plan, place);
  if (plan.buckets.empty()) throw InputError(place, rank + ": no buckets", "write the plan again with this ebb");
  std::int64_t padded = 0;
  for (const PlanBucket& bucket : plan.buckets) {
    if (bucket.begin.value != padded || bucket.end < bucket.begin)
      throw InputError(place, rank + ": buckets are not ascending without gaps");
    padded = bucket.end.value;
  }
  if (padded > kMostElements) throw InputError(place, fmt::format("{}: {} padded elements are too many", rank, padded));
  check_shards(plan, padded, place);
  check_parameters(plan, padded, place);
  Bytes all{0};
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.bytes > kMostBytes || (all += buffer.bytes) > kMostBytes)
      throw InputError(place, fmt::format("{}: buffer \"{}\" is too large for any machine", rank, buffer.name));
  }
  std::array<int, 5> streams{};
  for (const Stream& stream : plan.streams) {
    if (++streams[static_cast<std::size_t>(stream.kind)] > 1)
      throw InputError(place, fmt::format("{}: more than one stream of kind {}", rank, name_of(stream.kind)),
                       "a replay has one of each");
  }
}

}  // namespace ebb::replay
