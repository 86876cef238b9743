// What loading a checkpoint into gathered FP8 or FP4 weights takes beside the model and the optimizer. A checkpoint
// holds them in the model's type, so that each needs a target of that type, from which it is quantised.
// Not here: masters and moments, and what the reader of the checkpoint holds itself.
#pragma once

#include <cstdint>

#include "models/job.hpp"
#include "planner/layout.hpp"

namespace ebb {

enum class LoadTargets : std::uint8_t {
  on_device,  // Megatron-LM main and dev: the state dict dequantises every FP8 weight, all targets at once
  on_host,    // pull request 6544: placeholders in pageable host memory; a weight at a time comes over and is quantised
};

/// Where the Megatron-LM that takes the policy's flags has them.
constexpr LoadTargets load_targets_of(Policy policy) {
  return policy == Policy::full_reload || policy == Policy::chunked ? LoadTargets::on_host : LoadTargets::on_device;
}

struct LoadBytes {
  Bytes device{0};
  Bytes host{0};  // pageable
};

/// Highest bytes of the targets of one rank of the stage: of all quantised parameters in the model's type, or, with
/// targets on the host, as much there and the largest parameter on the device. Nothing without parameter gather.
/// Source: Megatron-LM core/fp8_utils.py (dequantize_fp8_tensor, for checkpoints); pull request 6544,
/// _should_load_fp8_skeleton_on_cpu and _replace_fp8_skeleton_data_with_cpu_placeholders.
LoadBytes quantized_load_bytes(const Job& job, const StageLayout& stage, LoadTargets targets);

}  // namespace ebb
