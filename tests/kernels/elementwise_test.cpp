// Scaling, casts and random fills treat each element as its formula says, whatever the runs, and touch no other.
#include "kernels/elementwise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using namespace ebb::kernels;

namespace {

constexpr float kGuard = -7.5F;

std::vector<float> values(std::size_t n, unsigned seed) {
  std::vector<float> x(n);
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  for (float& v : x) v = std::ldexp(normal(engine), static_cast<int>(engine() % 30) - 20);
  return x;
}

}  // namespace

TEST_CASE("scaling multiplies the run's elements and no other, for tails 0 to 70") {
  const std::vector<float> start = values(80, 1);
  for (std::int64_t n = 0; n <= 70; ++n) {
    std::vector<float> x = start;
    const Run run{.offset = 12, .numel = n};
    scale_ref(Type::fp32, x.data(), {&run, 1}, 0.37F);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool inside = i >= 3 && i < 3 + static_cast<std::size_t>(n);
      REQUIRE(x[i] == (inside ? static_cast<float>(static_cast<double>(start[i]) * 0.37F) : start[i]));
    }
  }
}

TEST_CASE("scaling bf16 rounds the product once to fp32 and once to bf16; NaNs become the GPU's") {
  std::vector<std::uint16_t> x = {0x3f80, 0x3f81, 0x7f7f, 0xffc1, 0x8000};
  const Run run{.numel = 5};
  scale_ref(Type::bf16, x.data(), {&run, 1}, 3);
  REQUIRE(x == std::vector<std::uint16_t>{0x4040, bf16_from_fp32(3 * fp32_from_bf16(0x3f81)), 0x7f80, 0x7fff, 0x8000});
  float nan = std::bit_cast<float>(0xffc01234U);
  const Run one{.numel = 1};
  scale_ref(Type::fp32, &nan, {&one, 1}, 1);
  REQUIRE(std::bit_cast<std::uint32_t>(nan) == 0x7fffffff);
}

TEST_CASE("casts convert each element, from any place to any place, in any split") {
  const std::vector<float> x = values(1000, 2);
  std::vector<std::uint16_t> bf16(1003, 0xabcd), fp16(bf16);
  std::vector<std::uint8_t> fp8(1003, 0xab);
  const std::vector<CastRun> pieces = {{.source = 4 * 400, .destination = 2 * 401, .numel = 599},
                                       {.source = 0, .destination = 2, .numel = 400},
                                       {.source = 4 * 5, .destination = 2, .numel = 0}};
  cast_ref({.source = x.data(), .destination = bf16.data()}, pieces);
  cast_ref({.source = x.data(), .destination = fp16.data(), .destination_type = Type::fp16}, pieces);
  const CastRun whole{.source = 0, .destination = 1, .numel = 999};
  cast_ref({.source = x.data(), .destination = fp8.data(), .destination_type = Type::fp8_e4m3, .scale = 64},
           {&whole, 1});
  for (std::size_t i = 0; i < 999; ++i) {
    REQUIRE(bf16[i + 1] == bf16_from_fp32(x[i]));
    REQUIRE(fp16[i + 1] == fp16_from_fp32(x[i]));
    REQUIRE(fp8[i + 1] == fp8_from_fp32(x[i] * 64));
  }
  REQUIRE((bf16[0] == 0xabcd && bf16[1000] == 0xabcd && fp16[0] == 0xabcd && fp8[0] == 0xab && fp8[1000] == 0xab));

  std::vector<float> back(1000, kGuard);
  const CastRun there{.source = 2, .destination = 4, .numel = 998};
  cast_ref(
      {.source = bf16.data(), .destination = back.data(), .source_type = Type::bf16, .destination_type = Type::fp32},
      {&there, 1});
  for (std::size_t i = 1; i <= 998; ++i) REQUIRE(back[i] == fp32_from_bf16(bf16[i]));
  REQUIRE((back[0] == kGuard && back[999] == kGuard));
  cast_ref(
      {.source = fp16.data(), .destination = back.data(), .source_type = Type::fp16, .destination_type = Type::fp32},
      {&there, 1});
  for (std::size_t i = 1; i <= 998; ++i) REQUIRE(back[i] == fp32_from_fp16(fp16[i]));
}

TEST_CASE("a random fill depends on seed and index alone, is uniform, and bf16 is its rounding") {
  constexpr std::int64_t kNumel = 40'000;
  std::vector<float> whole(kNumel), split(kNumel, kGuard);
  const Run all{.index = 5, .numel = kNumel};
  fill_random_ref(Type::fp32, whole.data(), {&all, 1}, 42, 3);
  std::vector<Run> runs;
  std::mt19937 engine(3);
  for (std::int64_t begin = 0; begin < kNumel;) {
    const std::int64_t n = std::min<std::int64_t>(kNumel - begin, engine() % 700);
    runs.push_back({.offset = 4 * begin, .index = 5 + begin, .numel = n});
    begin += n;
  }
  std::shuffle(runs.begin(), runs.end(), engine);
  fill_random_ref(Type::fp32, split.data(), runs, 42, 3);
  REQUIRE(split == whole);

  double sum = 0, squares = 0;
  for (const float x : whole) {
    REQUIRE((x >= -3 && x < 3));
    sum += x, squares += static_cast<double>(x) * x;
  }
  // Mean 0 and variance (2 * 3)^2 / 12 = 3; five standard errors.
  REQUIRE(std::abs(sum / kNumel) < 5 * std::sqrt(3.0 / kNumel));
  REQUIRE(squares / kNumel == Approx(3).epsilon(0.02));

  std::vector<std::uint16_t> narrow(kNumel);
  fill_random_ref(Type::bf16, narrow.data(), {&all, 1}, 42, 3);
  for (std::size_t i = 0; i < whole.size(); ++i) REQUIRE(narrow[i] == bf16_from_fp32(whole[i]));
  fill_random_ref(Type::fp32, split.data(), {&all, 1}, 43, 3);
  std::int64_t equal = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) equal += split[i] == whole[i] ? 1 : 0;
  REQUIRE(equal < 10);
}
