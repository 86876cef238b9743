// Which bits of an element are all set exactly where it is infinite or NaN.
#pragma once

#include <cstdint>

#include "kernels/types.hpp"

namespace ebb::kernels {

/// The exponent; in fp8 e4m3, which has no infinity, also the mantissa.
constexpr std::uint32_t nonfinite_mask(Type type) {
  switch (type) {
    case Type::bf16:
      return 0x7f80;
    case Type::fp16:
      return 0x7c00;
    case Type::fp8_e4m3:
      return 0x7f;
    default:
      return 0x7f800000;
  }
}

}  // namespace ebb::kernels
