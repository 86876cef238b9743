// One element of a host array of any type, for the references.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/types.hpp"

namespace ebb::kernels {

/// The element's bits. Element-aligned addresses suffice: nothing is assumed of `at`.
inline std::uint32_t read_bits(Type type, const char* at) {
  std::uint32_t bits = 0;
  // Each size for itself: one instruction. Little-endian hosts only, as GPUs' hosts are.
  switch (bytes_of(type)) {
    case 1:
      std::memcpy(&bits, at, 1);
      break;
    case 2:
      std::memcpy(&bits, at, 2);
      break;
    default:
      std::memcpy(&bits, at, 4);
  }
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
  const auto write = [at](auto bits) { std::memcpy(at, &bits, sizeof bits); };
  switch (type) {
    case Type::bf16:
      return write(bf16_from_fp32(value));
    case Type::fp16:
      return write(fp16_from_fp32(value));
    case Type::fp8_e4m3:
      return write(fp8_from_fp32(value));
    default:
      write(value);
  }
}

}  // namespace ebb::kernels
