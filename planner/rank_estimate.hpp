// Which rank of a stage a candidate makes the slowest, and which the fullest, without simulating them: estimates that
// only tell the ranks of one stage apart. They have the same parameters, gradients, activations and compute; what
// differs is the share of elements, the number of tensors, and how the candidate packs them.
#pragma once

#include <cstddef>

#include "models/policy.hpp"
#include "planner/lower.hpp"

namespace ebb {

struct RankEstimate {
  double seconds = 0;   // linear in elements, tensors and chunks, at the cluster's costs of each
  Bytes step_state{0};  // most optimizer state on the device at a time, with the allocator's rounding
  Bytes always{0};      // optimizer state that never leaves the device
};

/// O(shards).
RankEstimate estimate(const RankModel& rank, const Candidate& candidate);

}  // namespace ebb
