// The kernels' name for a storage type. (kernels/ depends on nothing, so it has names of its own.)
#pragma once

#include "kernels/types.hpp"
#include "models/dtype.hpp"

namespace ebb::replay {

constexpr kernels::Type kernel_type(Dtype type) {
  switch (type) {
    case Dtype::fp32:
      return kernels::Type::fp32;
    case Dtype::bf16:
      return kernels::Type::bf16;
    case Dtype::fp16:
      return kernels::Type::fp16;
    case Dtype::fp8:
      return kernels::Type::fp8_e4m3;
  }
  return kernels::Type::fp32;
}

}  // namespace ebb::replay
