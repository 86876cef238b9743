// Conversions round to the nearest value of the narrow format, ties to even, as a search over all its values finds it.
#include "kernels/types.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using namespace ebb::kernels;

namespace {

// A format by its definition: sign, exponent and mantissa fields.
struct Format {
  int exponent_bits, mantissa_bits;
  std::uint32_t largest;  // magnitude of the largest finite value
  std::uint32_t beyond;   // what larger values become
};
constexpr Format kBf16{8, 7, 0x7f7f, 0x7f80};
constexpr Format kFp16{5, 10, 0x7bff, 0x7c00};
constexpr Format kFp8{4, 3, 0x7e, 0x7e};

double value_of(const Format& f, std::uint32_t magnitude) {
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const double fraction = std::ldexp(magnitude & ((1U << f.mantissa_bits) - 1), -f.mantissa_bits);
  return exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
}

// The nearest finite value, by comparison of distances in double, where they are exact for these formats. Past the
// middle between the largest and what would follow it lies infinity (or the largest again, where it saturates).
std::uint32_t nearest(const Format& f, float x) {
  const double size = std::abs(static_cast<double>(x));
  const std::uint32_t sign = std::signbit(x) ? 1U << (f.exponent_bits + f.mantissa_bits) : 0;
  const double last_step = value_of(f, f.largest) - value_of(f, f.largest - 1);
  if (size >= value_of(f, f.largest) + last_step / 2) return sign | f.beyond;
  std::uint32_t low = 0, high = f.largest;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (value_of(f, middle) <= size ? low : high) = middle;
  }
  const double down = size - value_of(f, low), up = value_of(f, high) - size;
  const bool upper = up < down || (up == down && high % 2 == 0);
  return sign | (upper ? high : low);
}

// Every exponent; mantissas at and around the middles of narrow formats, and random ones.
std::vector<float> probes() {
  std::vector<float> values;
  std::mt19937 engine(1);
  for (std::uint32_t sign_exponent = 0; sign_exponent < 512; ++sign_exponent) {
    if (sign_exponent % 256 == 255) continue;  // infinities and NaNs
    for (int low = 0; low < 23; ++low) {
      for (int i = 0; i < 12; ++i) {
        const std::uint32_t high = static_cast<std::uint32_t>(engine()) & 0x7fffff & ~((1U << low) - 1);
        for (const std::uint32_t near : {high, (high + 1) & 0x7fffff, (high - 1) & 0x7fffff}) {
          values.push_back(std::bit_cast<float>(sign_exponent << 23 | near));
        }
      }
    }
  }
  return values;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

}  // namespace

TEST_CASE("fp32 rounds to the nearest bf16, fp16 and fp8, ties to even, over every exponent") {
  for (const float x : probes()) {
    CAPTURE(std::bit_cast<std::uint32_t>(x));
    REQUIRE(bf16_from_fp32(x) == nearest(kBf16, x));
    REQUIRE(fp16_from_fp32(x) == nearest(kFp16, x));
    REQUIRE(fp8_from_fp32(x) == nearest(kFp8, x));
  }
}

TEST_CASE("every finite value of a narrow format has its value and survives the way there and back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    const double sign = bits >= 0x8000 ? -1 : 1;
    if ((bits & 0x7fff) <= kBf16.largest) {
      REQUIRE(fp32_from_bf16(narrow) == sign * value_of(kBf16, bits & 0x7fff));
      REQUIRE(bf16_from_fp32(fp32_from_bf16(narrow)) == narrow);
    }
    if ((bits & 0x7fff) <= kFp16.largest) {
      REQUIRE(fp32_from_fp16(narrow) == sign * value_of(kFp16, bits & 0x7fff));
      REQUIRE(fp16_from_fp32(fp32_from_fp16(narrow)) == narrow);
    }
  }
  for (std::uint32_t bits = 0; bits < 0x100; ++bits) {
    if ((bits & 0x7f) > kFp8.largest) continue;
    const auto narrow = static_cast<std::uint8_t>(bits);
    REQUIRE(fp32_from_fp8(narrow) == (bits >= 0x80 ? -1 : 1) * value_of(kFp8, bits & 0x7f));
    REQUIRE(fp8_from_fp32(fp32_from_fp8(narrow)) == narrow);
  }
}

TEST_CASE("infinities stay, except in fp8, which saturates at 448") {
  REQUIRE(bf16_from_fp32(-kInfinity) == 0xff80);
  REQUIRE(bf16_from_fp32(std::numeric_limits<float>::max()) == 0x7f80);
  REQUIRE(fp16_from_fp32(kInfinity) == 0x7c00);
  REQUIRE(fp16_from_fp32(65520) == 0x7c00);  // the middle between the largest and 2^16
  REQUIRE(fp16_from_fp32(65519) == 0x7bff);
  REQUIRE(fp8_from_fp32(kInfinity) == 0x7e);
  REQUIRE(fp8_from_fp32(-1e9F) == 0xfe);
  REQUIRE(fp32_from_fp8(0x7e) == 448);
  REQUIRE(fp32_from_bf16(0x7f80) == kInfinity);
  REQUIRE(fp32_from_fp16(0xfc00) == -kInfinity);
}

TEST_CASE("any NaN becomes the GPU's one NaN; widening a bf16 keeps its bits") {
  for (const std::uint32_t bits : {0x7f800001U, 0xffc01234U, 0x7fffffffU}) {
    REQUIRE(bf16_from_fp32(float_of(bits)) == 0x7fff);
    REQUIRE(fp16_from_fp32(float_of(bits)) == 0x7fff);
    REQUIRE(fp8_from_fp32(float_of(bits)) == 0x7f);
    REQUIRE(std::bit_cast<std::uint32_t>(canonical(float_of(bits))) == 0x7fffffff);
  }
  REQUIRE(canonical(-0.0F) == 0);
  REQUIRE(std::signbit(canonical(-0.0F)));
  REQUIRE(std::bit_cast<std::uint32_t>(fp32_from_bf16(0xffc1)) == 0xffc10000);
  REQUIRE(std::bit_cast<std::uint32_t>(fp32_from_fp16(0xfe01)) == 0x7fffffff);
  REQUIRE(std::bit_cast<std::uint32_t>(fp32_from_fp8(0xff)) == 0x7fffffff);
}

TEST_CASE("bytes of the types") {
  REQUIRE(bytes_of(Type::fp32) == 4);
  REQUIRE(bytes_of(Type::bf16) == 2);
  REQUIRE(bytes_of(Type::fp16) == 2);
  REQUIRE(bytes_of(Type::fp8_e4m3) == 1);
}
