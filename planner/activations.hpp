// Activations of one pipeline rank: what its forward and backward hold at most, from the schedule and the layers'
// tapes. Not here: parameters, gradients and workspaces (footprint.hpp).
#pragma once

#include <cstdint>

#include "models/job.hpp"
#include "models/units.hpp"
#include "planner/layout.hpp"

namespace ebb {

struct StageActivations {
  Bytes saved{0};  // most that is alive when a micro-batch has been through the layers, before prediction and loss
  Bytes turn{0};   // what the highest moment of the step has on top: logits and loss, a layer's gradients, a recomputed
                   // block
  // What the step allocates on first use and keeps:
  Bytes gradient_stand_ins{0};  // Transformer Engine's, in the place of fused weight gradients
  Bytes shared_buffer{0};       // Megatron-LM's GlobalMemoryBuffer, which stays
};

/// By walking the allocations of one step (allocation_trace_stage.hpp) in the order of the pipeline schedule.
StageActivations stage_activations(const Job& job, const StageLayout& stage);

/// Rows of the embedding and output matrices before they are split over TP.
/// Source: Megatron-LM core/tokenizers/utils/build_tokenizer.py:133.
std::int64_t padded_vocabulary(const Job& job);

}  // namespace ebb
