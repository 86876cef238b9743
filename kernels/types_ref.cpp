// Conversions between element types, in integer arithmetic on the bits of an fp32.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/types.hpp"

namespace ebb::kernels {
namespace {

constexpr std::uint32_t kNan = 0x7fffffff;
constexpr std::uint32_t kInfinity = 0x7f800000;

// The magnitude of a finite fp32, rounded to a format of kMantissa bits with exponent bias kBias, as if exponents went
// on for ever: a carry out of the mantissa lands in the exponent, where it belongs. Below the least normal number the
// leading one becomes explicit and bits are lost one by one; fp32's own subnormals are all rounded to zero by then.
template <int kMantissa, int kBias>
std::uint32_t round_magnitude(std::uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  const int below = std::max(0, 1 - kBias - exponent);
  const int lost = 23 - kMantissa + below;
  if (lost > 24) return 0;
  const std::uint32_t fraction = magnitude & 0x7fffff;
  const std::uint32_t value = fraction | (below > 0 ? 1U : static_cast<std::uint32_t>(exponent + kBias)) << 23;
  const std::uint32_t just_under_half = (1U << (lost - 1)) - 1;
  return (value + just_under_half + ((value >> lost) & 1)) >> lost;
}

// The value of a narrow format's finite magnitude: exact, the product of a subnormal's fraction too.
template <int kMantissa, int kBias>
float widen_magnitude(std::uint32_t magnitude) {
  constexpr auto kShift = static_cast<std::uint32_t>(23 - kMantissa);
  constexpr float kLeast = std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - kBias - kMantissa) << 23);
  if (magnitude >> kMantissa == 0) return static_cast<float>(magnitude) * kLeast;
  return std::bit_cast<float>((magnitude << kShift) + (static_cast<std::uint32_t>(127 - kBias) << 23));
}

}  // namespace

std::uint16_t fp16_from_fp32(float x) {
  constexpr std::uint32_t kInfinity16 = 0x7c00;
  if (std::isnan(x)) return 0x7fff;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t rounded = magnitude >= kInfinity ? kInfinity16 : round_magnitude<10, 15>(magnitude);
  return static_cast<std::uint16_t>((bits >> 31) << 15 | std::min(rounded, kInfinity16));
}

float fp32_from_fp16(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7fff;
  if (magnitude > 0x7c00) return std::bit_cast<float>(kNan);
  const float value = magnitude == 0x7c00 ? std::bit_cast<float>(kInfinity) : widen_magnitude<10, 15>(magnitude);
  return std::copysign(value, (bits & 0x8000) != 0 ? -1.0F : 1.0F);
}

std::uint8_t fp8_from_fp32(float x) {
  constexpr std::uint32_t kLargest = 0x7e;
  if (std::isnan(x)) return 0x7f;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t rounded = magnitude >= kInfinity ? kLargest : round_magnitude<3, 7>(magnitude);
  return static_cast<std::uint8_t>((bits >> 31) << 7 | std::min(rounded, kLargest));
}

float fp32_from_fp8(std::uint8_t bits) {
  const std::uint32_t magnitude = bits & 0x7f;
  if (magnitude == 0x7f) return std::bit_cast<float>(kNan);
  return std::copysign(widen_magnitude<3, 7>(magnitude), (bits & 0x80) != 0 ? -1.0F : 1.0F);
}

}  // namespace ebb::kernels
