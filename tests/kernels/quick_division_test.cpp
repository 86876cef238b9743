// The quick divisions and the root give the CPU's quotients and roots, bit for bit: every significand with every
// approximation that PTX allows the device, the dividends hardest to round, and the ends of the range they are used in.
//
// PTX ISA: rcp.approx.ftz.f32 is within 1 ulp, rsqrt.approx.ftz.f32 within 2^-22.9 of the root's reciprocal.
#include "kernels/quick_division.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

using namespace ebb::kernels;

namespace {

constexpr std::uint32_t kOne = 0x3f80'0000, kSignificands = 1U << 23;

float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
float moved(float x, int ulps) { return float_of(std::bit_cast<std::uint32_t>(x) + static_cast<std::uint32_t>(ulps)); }
bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

// What the device may give for 1 / y, 1 <= y < 2: ulps of (0.5, 1].
std::vector<float> reciprocals_of(float y) {
  const double exact = 1 / static_cast<double>(y);
  std::vector<float> all;
  for (int k = -2; k <= 2; ++k) {
    const float r = moved(static_cast<float>(exact), k);
    if (std::abs(r - exact) <= 0x1p-24) all.push_back(r);
  }
  return all;
}

// The one approximation of them that quick_division.hpp excludes.
bool excluded(float y, float approximation) { return y == 0x1.fffffep0F && approximation <= 0.5F; }

// Dividends of 24 bits whose quotients by `y` (odd, as an integer of 24 bits) lie next to midpoints: 2^(s + 1) x is
// congruent to a small odd number modulo y.
std::vector<float> hard_dividends(std::uint32_t y) {
  std::vector<float> all;
  const auto half = [y](std::uint64_t x) { return x % 2 == 0 ? x / 2 : (x + y) / 2; };  // modulo an odd y
  for (const std::int64_t near : {-5, -3, -1, 1, 3, 5}) {
    std::uint64_t x = static_cast<std::uint64_t>(near + static_cast<std::int64_t>(y)) % y;
    for (int s = 0; s < 24; ++s) x = half(x);
    if (x + y < (1U << 24)) all.push_back(static_cast<float>(x + y));  // the quotient is at least 1: s is 23
    x = half(x);
    if (x >= (1U << 23)) all.push_back(static_cast<float>(x));
  }
  return all;
}

}  // namespace

TEST_CASE("every significand's reciprocal is good enough for Markstein's theorem, but of one with one approximation") {
  std::set<std::pair<float, float>> bad;
  for (std::uint32_t i = 0; i < kSignificands; ++i) {
    const float y = float_of(kOne + i);
    for (const float approximation : reciprocals_of(y)) {
      const double error = std::abs(1 - static_cast<double>(quick::refined(y, approximation)) * y);  // exact
      if (!(error * (kSignificands + i + 1.0) < 1)) bad.insert({y, approximation});
    }
  }
  REQUIRE(bad == std::set<std::pair<float, float>>{{0x1.fffffep0F, 0.5F}});
  // There the division is wrong indeed: the bound is no excess of caution.
  REQUIRE(quick::quotient(1, 0x1.fffffep0F, 0.5F) != 1 / 0x1.fffffep0F);
}

TEST_CASE("every significand's root is right with every approximation, but of two with one each") {
  std::set<std::pair<float, float>> bad;
  const double bound = std::exp2(-22.9);
  for (std::uint32_t i = 0; i < 2 * kSignificands; ++i) {
    const float x = float_of(kOne + i);
    const double exact = std::sqrt(static_cast<double>(x));
    const float want = std::sqrt(x);
    for (int k = -3; k <= 3; ++k) {
      const float approximation = moved(static_cast<float>(1 / exact), k);
      if (std::abs(approximation * exact - 1) > bound) continue;
      if (quick::root(x, approximation) != want) bad.insert({x, approximation});
    }
  }
  REQUIRE(bad == std::set<std::pair<float, float>>{{0x1.f82294p0F, 0x1.6cda12p-1F}, {0x1.dd26e4p1F, 0x1.092fp-1F}});
}

TEST_CASE("quotients next to midpoints round as the CPU's, by a divisor known beforehand or not") {
  std::mt19937 engine(1);
  std::int64_t tried = 0, wrong = 0;
  const auto both = [&](float x, float y) {
    const float want = x / y;
    ++tried;
    wrong += quick::quotient(x, y, quick::reciprocal(y)) != want ? 1 : 0;
    const float scale = 0x1p-23F;  // exact: approximations are those of [1, 2)
    for (const float approximation : reciprocals_of(y * scale)) {
      if (!excluded(y * scale, approximation)) wrong += quick::quotient(x * scale, y * scale, approximation) != want;
    }
  };
  for (int i = 0; i < 100'000; ++i) {
    const std::uint32_t at = i < 1000 ? static_cast<std::uint32_t>(i) : engine() % (kSignificands / 2);
    for (const std::uint32_t y : {(1U << 23) + 2 * at + 1, (1U << 24) - 2 * at - 1}) {
      for (const float x : hard_dividends(y)) both(x, static_cast<float>(y));
    }
    both(static_cast<float>((1U << 23) + engine() % kSignificands),
         static_cast<float>((1U << 23) + engine() % kSignificands));
  }
  REQUIRE(tried > 500'000);
  REQUIRE(wrong == 0);
}

TEST_CASE("every dividend's significand is divided right by bias corrections") {
  std::int64_t wrong = 0;
  for (const float beta : {0.9F, 0.95F, 0.999F}) {
    for (const int step : {1, 2, 1000}) {
      const float c = adamw_step({.beta1 = beta}, step).bias_correction1;
      const quick::Reciprocal r = quick::reciprocal(c);
      for (std::uint32_t i = 0; i < kSignificands; i += step == 1 ? 1 : 7) {
        const float x = float_of(kOne + i);
        wrong += quick::quotient(x, c, r) != x / c ? 1 : 0;
      }
    }
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("at the ends of the range, a whole step has the reference's bits") {
  std::mt19937 engine(2);
  const auto pick = [&](int low, int high) {  // the ends more often; the largest exponent only as a power of two
    const std::uint32_t k = engine() % 4;
    const auto span = static_cast<std::uint32_t>(high - low);
    const int exponent = k == 0 ? low : k == 1 ? high : low + static_cast<int>(engine() % span);
    const float significand = engine() % 8 == 0 ? 1 : float_of(kOne + engine() % kSignificands);
    return exponent == high ? std::ldexp(1.0F, high) : std::ldexp(significand, exponent);
  };
  const auto any_of_three = [&](float x) { return moved(x, static_cast<int>(engine() % 3) - 1); };
  std::int64_t wrong = 0, tried = 0;
  for (int i = 0; i < 4'000'000; ++i) {
    const float m = (engine() % 2 != 0 ? 1.0F : -1.0F) * pick(-80, 30), v = pick(-90, 30);
    AdamwStep s = adamw_step({}, 1);
    s.bias_correction1 = pick(-30, 0), s.bias_correction2 = pick(-30, 0);
    s.epsilon = engine() % 4 == 0 ? 0 : pick(-40, 0);
    wrong += quick::in_range(s) && quick::in_range(m, v) ? 0 : 1;
    const quick::Constants c = quick::constants(s);

    const float square = quick::quotient(v, s.bias_correction2, c.bias_correction2);
    const float reciprocal_root = static_cast<float>(1 / std::sqrt(static_cast<double>(square)));
    const float y = quick::root(square, reciprocal_root) + s.epsilon;
    const float approximation = any_of_three(1 / y);
    const float x = quick::quotient(m, s.bias_correction1, c.bias_correction1);
    if (std::bit_cast<std::uint32_t>(y) % kSignificands == kSignificands - 1) continue;  // all ones: see above
    ++tried;
    const float want = (m / s.bias_correction1) / (std::sqrt(v / s.bias_correction2) + s.epsilon);
    wrong += same_bits(quick::quotient(x, y, approximation), want) ? 0 : 1;
  }
  REQUIRE(tried > 3'900'000);
  REQUIRE(wrong == 0);
}

TEST_CASE("everything else goes the compiler's way") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float m : {0.0F, -0.0F, 0x1p-149F, 0x1.fffffep-81F, 0x1.000002p30F, kInfinity, -kInfinity, kNan}) {
    REQUIRE_FALSE(quick::in_range(m, 1));
  }
  for (const float v : {0.0F, -1.0F, 0x1p-149F, 0x1.fffffep-91F, 0x1.000002p30F, kInfinity, kNan}) {
    REQUIRE_FALSE(quick::in_range(1, v));
  }
  REQUIRE(quick::in_range(-0x1p-80F, 0x1p-90F));
  REQUIRE(quick::in_range(-0x1p30F, 0x1p30F));
  AdamwStep step = adamw_step({}, 1);
  REQUIRE(quick::constants(step).usable);
  for (float AdamwStep::*what : {&AdamwStep::bias_correction1, &AdamwStep::bias_correction2, &AdamwStep::epsilon}) {
    for (const float bad : {-1.0F, 1.000001F, kInfinity, kNan}) {
      AdamwStep other = step;
      other.*what = bad;
      REQUIRE_FALSE(quick::constants(other).usable);
    }
  }
  step.bias_correction2 = 0;  // beta2 = 1
  REQUIRE_FALSE(quick::constants(step).usable);
}
