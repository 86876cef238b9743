// The sum of squares is right, in the order it promises, and independent of addresses; clipping follows its formula.
#include "kernels/norm.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/sum_order.hpp"
#include "tests/catch.hpp"

using namespace ebb::kernels;

namespace {

std::vector<float> normal_floats(std::size_t n, unsigned seed) {
  std::vector<float> values(n);
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  for (float& x : values) x = std::ldexp(normal(engine), static_cast<int>(engine() % 40) - 20);
  return values;
}

float sum_of(const std::vector<float>& x) {
  const Run run{.numel = static_cast<std::int64_t>(x.size())};
  return sum_of_squares_ref(Type::fp32, x.data(), {&run, 1});
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("squares of small integers are summed exactly: n (n + 1) (2 n + 1) / 6") {
  for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 31, 127, 128, 129, 230}) {  // sums below 2^24 are exact in fp32
    std::vector<float> x;
    for (std::int64_t i = 1; i <= n; ++i) x.push_back(static_cast<float>(i % 2 == 0 ? i : -i));
    const std::int64_t sum = n * (n + 1) * (2 * n + 1) / 6;  // exact
    REQUIRE(sum_of(x) == static_cast<float>(sum));
  }
}

TEST_CASE("sums over many tiles and runs are those of extended precision") {
  const std::vector<float> x = normal_floats(100'003, 1);
  const std::vector<Run> runs = {
      {.offset = 4 * 5, .numel = 40'000}, {.offset = 4 * 50'001, .numel = 50'002}, {.offset = 0, .numel = 5}};
  long double want = 0;
  for (const Run& run : runs) {
    for (std::int64_t i = 0; i < run.numel; ++i) {
      const long double value = x[static_cast<std::size_t>(run.offset / 4 + i)];
      want += value * value;
    }
  }
  // Double sums err far below fp32's half ulp, so the result is the fp32 nearest to the exact sum or a neighbour.
  REQUIRE(std::abs(sum_of_squares_ref(Type::fp32, x.data(), runs) - want) <=
          want * static_cast<long double>(std::numeric_limits<float>::epsilon()) * 0.5001L);
}

TEST_CASE("bf16 gradients are summed as the fp32 values they are, from any address") {
  const std::vector<float> wide = normal_floats(20'001, 2);
  std::vector<std::uint16_t> narrow;
  std::vector<float> rounded;
  for (const float x : wide) {
    narrow.push_back(bf16_from_fp32(x));
    rounded.push_back(fp32_from_bf16(narrow.back()));
  }
  for (const std::int64_t shift : {0, 1, 2, 3, 7}) {
    const std::int64_t n = 20'001 - shift;
    const Run of_bf16{.offset = 2 * shift, .numel = n}, of_fp32{.offset = 4 * shift, .numel = n};
    REQUIRE(sum_of_squares_ref(Type::bf16, narrow.data(), {&of_bf16, 1}) ==
            sum_of_squares_ref(Type::fp32, rounded.data(), {&of_fp32, 1}));
  }
}

TEST_CASE("overflow, infinities and NaNs show in the sum; subnormals do not vanish") {
  REQUIRE(sum_of({3e38F, 3e38F}) == kInfinity);
  REQUIRE(sum_of({1, -kInfinity}) == kInfinity);
  const float nan = sum_of({1, std::bit_cast<float>(0xffc01234U), 2});
  REQUIRE(std::bit_cast<std::uint32_t>(nan) == 0x7fffffff);
  REQUIRE(sum_of({1e-22F}) == Approx(1e-44).epsilon(0.1));
  REQUIRE(sum_of({}) == 0);
}

TEST_CASE("workspace: one double a tile of each run") {
  const std::vector<Run> runs = {{.numel = 0}, {.numel = 1}, {.numel = kSumTile}, {.numel = kSumTile + 1}};
  REQUIRE(sum_of_squares_workspace(runs) == 4 * 8);
  REQUIRE(sum_of_squares_workspace({}) == 0);
}

TEST_CASE("clipping: the coefficient brings the norm to the limit, and is 1 below it") {
  float norm = -1, coefficient = -1;
  std::uint32_t nonfinite = 7;
  const auto clip = [&](float sum, float limit) {
    clip_coefficient_ref({.sum = &sum, .norm = &norm, .coefficient = &coefficient, .nonfinite = &nonfinite}, limit);
  };
  clip(25, 1);
  REQUIRE(norm == 5);
  REQUIRE(coefficient == Approx(0.2).epsilon(1e-6));
  REQUIRE(coefficient < 0.2F);
  REQUIRE(nonfinite == 0);
  clip(25, 6);
  REQUIRE(coefficient == 1);
  clip(0, 1);
  REQUIRE(norm == 0);
  REQUIRE(coefficient == 1);
  clip(kInfinity, 1);
  REQUIRE(coefficient == 0);
  REQUIRE(nonfinite == 1);
  clip(std::numeric_limits<float>::quiet_NaN(), 1);
  REQUIRE(std::bit_cast<std::uint32_t>(norm) == 0x7fffffff);
  REQUIRE(coefficient == 1);
  REQUIRE(nonfinite == 1);
}

TEST_CASE("a loss scale that is a power of two changes no bit of what gradients become") {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  for (const float scale : {1.0F, 0x1p10F, 0x1p16F, 0x1p32F}) {
    for (int i = 0; i < 200; ++i) {
      const float sum = std::abs(normal(engine)) * std::ldexp(1.0F, i % 20 - 10), scaled_sum = sum * scale * scale;
      float norm = 0, coefficient = 0, scaled_norm = 0, scaled_coefficient = 0;
      clip_coefficient_ref({.sum = &sum, .norm = &norm, .coefficient = &coefficient}, 0.5F);
      clip_coefficient_ref({.sum = &scaled_sum, .norm = &scaled_norm, .coefficient = &scaled_coefficient}, 0.5F,
                           1 / scale);
      REQUIRE(scaled_norm == norm);
      REQUIRE(scaled_coefficient * scale == coefficient);
    }
  }
  const float infinite = kInfinity;
  float norm = 0, coefficient = -1;
  std::uint32_t nonfinite = 0;
  clip_coefficient_ref({.sum = &infinite, .norm = &norm, .coefficient = &coefficient, .nonfinite = &nonfinite}, 1,
                       0x1p-16F);
  REQUIRE((norm == kInfinity && coefficient == 0 && nonfinite == 1));
}

TEST_CASE("non-finite elements are counted in every type") {
  std::vector<float> x = {0, 1, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 3e38F, 1e-45F};
  const std::vector<Run> runs = {{.offset = 0, .numel = 3}, {.offset = 12, .numel = 4}};
  REQUIRE(count_nonfinite_ref(Type::fp32, x.data(), runs) == 3);
  for (const Type type : {Type::bf16, Type::fp16, Type::fp8_e4m3}) {
    // By the conversion back: independent of the mask.
    std::uint64_t want = 0;
    const std::uint32_t all = 1U << (8 * bytes_of(type));
    std::vector<std::uint8_t> bytes;
    for (std::uint32_t bits = 0; bits < all; ++bits) {
      for (std::int64_t b = 0; b < bytes_of(type); ++b) bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * b)));
      const float value = type == Type::bf16   ? fp32_from_bf16(static_cast<std::uint16_t>(bits))
                          : type == Type::fp16 ? fp32_from_fp16(static_cast<std::uint16_t>(bits))
                                               : fp32_from_fp8(static_cast<std::uint8_t>(bits));
      want += std::isfinite(value) ? 0 : 1;
    }
    const Run run{.numel = static_cast<std::int64_t>(all)};
    REQUIRE(count_nonfinite_ref(type, bytes.data(), {&run, 1}) == want);
  }
}
