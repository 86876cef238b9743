// ActivationLevels: how the memory of forward and backward rises and falls over the step of one pipeline rank, as a
// stack of levels: the lowest rises first and falls last. What tidal brings state into and takes it out for.
//
// Why levels and not tensors: a plan wants few allocations, and room that comes back in the reverse order of its
// going. The stack holds at any time at least what the layers' tensors do (activation_levels.cpp), and all of it
// exactly what Footprint counts, so peaks stay as they are.
// Not here: what the tensors are (allocation_trace_stage.hpp), the ops (compute_cuts.hpp).
#pragma once

#include <cstddef>
#include <vector>

#include "models/job.hpp"
#include "models/units.hpp"
#include "planner/activation_stretches.hpp"
#include "planner/compute_model.hpp"
#include "planner/footprint.hpp"
#include "planner/layout.hpp"

namespace ebb {

/// Alive in [rises, falls), counted from the start of forward in compute time: forward and backward of all
/// micro-batches with the pipeline's bubbles, without what else a step waits for.
struct ActivationLevel {
  Bytes bytes{0};
  Ticks rises{0};
  Ticks falls{0};

  bool operator==(const ActivationLevel&) const = default;
};

struct ActivationLevels {
  /// Bottom first: `rises` ascend, `falls` descend. The sum of bytes is Footprint::activations + logits.
  std::vector<ActivationLevel> levels;
  Ticks forward{0};   // of the whole step, as in StepFrame
  Ticks backward{0};  // ... and no level falls after forward + backward
};

/// At most `most_levels` levels, which is not 0; none where nothing is held. `compute` is of the stage's pipeline rank.
ActivationLevels activation_levels(const Job& job, const StageLayout& stage, const ComputeTime& compute,
                                   const Footprint& footprint, std::size_t most_levels = 48);

/// Of stretches that take `total` together; the lowest level has more or less than they say, so that the sum is
/// `whole`.
std::vector<ActivationLevel> levels_of(const std::vector<ActivationStretch>& stretches, Ticks total, Bytes whole,
                                       std::size_t most_levels);

}  // namespace ebb
