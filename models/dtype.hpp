// Storage types of parameters, gradients and optimizer state.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/units.hpp"

namespace ebb {

/// fp8 is one byte (E4M3 data); its scales are counted by the recipe, not here.
enum class Dtype : std::uint8_t { fp32, bf16, fp16, fp8 };

constexpr std::int64_t size_of(Dtype type) {
  switch (type) {
    case Dtype::fp32:
      return 4;
    case Dtype::bf16:
    case Dtype::fp16:
      return 2;
    case Dtype::fp8:
      return 1;
  }
  return 0;
}

constexpr std::string_view name_of(Dtype type) {
  switch (type) {
    case Dtype::fp32:
      return "fp32";
    case Dtype::bf16:
      return "bf16";
    case Dtype::fp16:
      return "fp16";
    case Dtype::fp8:
      return "fp8";
  }
  return "";
}

}  // namespace ebb
