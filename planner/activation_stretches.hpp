// ActivationStretches: what one pipeline rank's forward and backward hold, pass by pass through its layers, over the
// time of the whole step. Not here: levels (activation_levels.hpp), the tensors (allocation_trace_stage.hpp).
#pragma once

#include <vector>

#include "models/job.hpp"
#include "models/units.hpp"
#include "planner/compute_model.hpp"
#include "planner/layout.hpp"

namespace ebb {

struct ActivationStretch {
  Seconds length{0};
  Bytes highest{0};  // the most that is alive at any moment of it
};

/// One after another, from the start of the first stage's forward to the end of its last backward; the lengths add up
/// to compute's forward and backward (activation_stretches.cpp). Without what the step finds allocated.
std::vector<ActivationStretch> activation_stretches(const Job& job, const StageLayout& stage,
                                                    const ComputeTime& compute);

}  // namespace ebb
