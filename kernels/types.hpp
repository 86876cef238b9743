// Element types of arrays on the device, and the conversions whose bits both implementations share.
//
// Why our own: a CPU has no bf16 or fp8, and every kernel's reference must round exactly as the GPU does. Rounding is
// to nearest, ties to even; NaNs become the GPU's one NaN. Not here: the device's side, which uses its own
// instructions. What every step of a reference calls for every element is inline.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ebb::kernels {

enum class Type : std::uint8_t { fp32, bf16, fp16, fp8_e4m3 };

constexpr std::int64_t bytes_of(Type type) { return type == Type::fp32 ? 4 : type == Type::fp8_e4m3 ? 1 : 2; }

/// `x`, or the GPU's NaN (0x7fffffff) for any NaN: what arithmetic on the device returns.
inline float canonical(float x) { return std::isnan(x) ? std::bit_cast<float>(0x7fffffffU) : x; }

/// Drops the low 16 bits. Overflow becomes infinity by the carry; NaN 0x7fff.
inline std::uint16_t bf16_from_fp32(float x) {
  if (std::isnan(x)) return 0x7fff;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t round = 0x7fff + ((bits >> 16) & 1);
  return static_cast<std::uint16_t>((bits + round) >> 16);
}
/// Exact; a NaN keeps its bits.
inline float fp32_from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

/// IEEE binary16: subnormals are kept, overflow becomes infinity; NaN 0x7fff.
std::uint16_t fp16_from_fp32(float x);
/// Exact; a NaN becomes the GPU's.
float fp32_from_fp16(std::uint16_t bits);

/// E4M3 of "FP8 Formats for Deep Learning" (Micikevicius et al. 2022, arXiv 2209.05433): largest 448, no infinity, NaN
/// 0x7f. Larger values and infinities saturate to +-448, as __nv_cvt_float_to_fp8 does with __NV_SATFINITE.
std::uint8_t fp8_from_fp32(float x);
/// Exact; a NaN becomes the GPU's.
float fp32_from_fp8(std::uint8_t bits);

}  // namespace ebb::kernels
