// One element of a host array of any type, for the references.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/types.hpp"

namespace ebb::kernels {

/// The element's bits. Element-aligned addresses suffice: nothing is assumed of `at`.
inline std::uint32_t read_bits(Type type, const char* at) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(bytes_of(type)));  // little-endian hosts only, as GPUs' hosts are
  return bits;
}

inline float read_value(Type type, const char* at) {
  const std::uint32_t bits = read_bits(type, at);
  switch (type) {
    case Type::bf16:
      return fp32_from_bf16(static_cast<std::uint16_t>(bits));
    case Type::fp16:
      return fp32_from_fp16(static_cast<std::uint16_t>(bits));
    case Type::fp8_e4m3:
      return fp32_from_fp8(static_cast<std::uint8_t>(bits));
    default:
      break;
  }
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Writes `value` rounded to `type`; fp32 keeps the bits it is given.
inline void write_value(Type type, char* at, float value) {
  std::uint32_t bits = 0;
  switch (type) {
    case Type::bf16:
      bits = bf16_from_fp32(value);
      break;
    case Type::fp16:
      bits = fp16_from_fp32(value);
      break;
    case Type::fp8_e4m3:
      bits = fp8_from_fp32(value);
      break;
    default:
      std::memcpy(&bits, &value, sizeof value);
  }
  std::memcpy(at, &bits, static_cast<std::size_t>(bytes_of(type)));
}

}  // namespace ebb::kernels
