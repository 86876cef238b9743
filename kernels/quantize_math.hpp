// What a largest value says about a scale, and powers of two as E8M0 holds them: shared by kernels and references.
//
// Sources: Transformer Engine, common/recipe/recipe_common.cuh (compute_scale_from_amax), common/multi_tensor/
// compute_scale.cu (which finite value stands for an infinite scale of master weights: fp32's largest),
// common/util/ptx_arch_spec.cuh (float_to_e8m0). All largest values are not negative.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/host_device.hpp"

namespace ebb::kernels {

inline constexpr float kFp8Largest = 448;  // of E4M3

EBB_HOST_DEVICE inline std::uint32_t bits_of(float x) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(x);
#else
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
#endif
}
EBB_HOST_DEVICE inline float float_of_bits(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  float x = 0;
  std::memcpy(&x, &bits, sizeof x);
  return x;
#endif
}

// One rounding each, subnormals included.
EBB_HOST_DEVICE inline float rounded_quotient(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}
EBB_HOST_DEVICE inline float rounded_product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

/// What elements are multiplied by so that `largest` becomes 448: 1 where that is 0, infinite or NaN, and fp32's
/// largest where it is so small that the quotient overflows. `power_of_two`: rounded down to one.
EBB_HOST_DEVICE inline float scale_of_largest(float largest, bool power_of_two) {
  constexpr std::uint32_t kInfinity = 0x7f800000, kGreatest = 0x7f7fffff;
  const std::uint32_t magnitude = bits_of(largest) & 0x7fffffff;
  if (magnitude == 0 || magnitude >= kInfinity) return 1;
  std::uint32_t scale = bits_of(rounded_quotient(kFp8Largest, largest));
  if (scale == kInfinity) scale = kGreatest;
  return float_of_bits(power_of_two ? scale & 0xff800000 : scale);
}

/// The exponent byte of the least power of two that is not below `x`: 2^(byte - 127). NaN 0xff, infinity 0xfe, 0 and
/// what is not above 2^-127 0.
EBB_HOST_DEVICE inline std::uint8_t e8m0_of(float x) {
  const std::uint32_t bits = bits_of(x) & 0x7fffffff;
  if (bits > 0x7f800000) return 0xff;
  if (bits == 0x7f800000) return 0xfe;
  if (bits <= 0x00400000) return 0;            // 2^-127 in fp32 is subnormal
  const std::uint32_t up = bits + 0x007fffff;  // carries into the exponent unless the mantissa is 0
  return static_cast<std::uint8_t>((up >> 23) < 0xfe ? up >> 23 : 0xfe);
}
EBB_HOST_DEVICE inline std::uint8_t e8m0_of_largest(float largest) {
  return e8m0_of(rounded_product(largest, 1.0F / kFp8Largest));
}

/// 2^(byte - 127), and its reciprocal. NaN for 0xff, which no number has.
EBB_HOST_DEVICE inline float value_of_e8m0(std::uint8_t byte) {
  if (byte == 0xff) return float_of_bits(0x7fffffff);
  return float_of_bits(byte == 0 ? 0x00400000U : static_cast<std::uint32_t>(byte) << 23);
}
EBB_HOST_DEVICE inline float reciprocal_of_e8m0(std::uint8_t byte) {
  if (byte == 0xff) return float_of_bits(0x7fffffff);
  return float_of_bits(byte == 0xfe ? 0x00400000U : (254U - byte) << 23);
}

}  // namespace ebb::kernels
