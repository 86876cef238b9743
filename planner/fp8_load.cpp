#include "planner/fp8_load.hpp"

#include <algorithm>

#include "models/memory/torch_allocator.hpp"

namespace ebb {

LoadBytes quantized_load_bytes(const Job& job, const StageLayout& stage, LoadTargets targets) {
  Bytes asked{0};
  Bytes allocated{0};
  Bytes largest{0};
  for (const Parameter& parameter : stage.parameters) {
    if (!parameter.quantized) continue;
    const Bytes target = bytes_of(parameter.numel(), size_of(job.precision.params));
    asked += target;
    allocated += memory::allocated_bytes(target);
    largest = std::max(largest, memory::allocated_bytes(target));
  }
  if (targets == LoadTargets::on_device) return {.device = allocated, .host = {}};
  return {.device = largest, .host = asked};
}

}  // namespace ebb
