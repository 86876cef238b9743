// Time of forward and backward of one pipeline rank's whole step (all micro-batches, pipeline bubbles included), by
// roofline at the cluster's achieved rates, or from the job's measured compute.step_seconds.
#pragma once

#include "models/job.hpp"
#include "models/units.hpp"
#include "planner/flops.hpp"
#include "planner/parameters.hpp"

namespace ebb {

struct ComputeTime {
  Seconds forward{0};
  Seconds backward{0};
  bool measured = false;  // from compute.step_seconds, split 1:2 between forward and backward (1:3 with full recompute)
};

/// Precondition: a valid job. Source of InputErrors: model_chunks.
ComputeTime compute_time(const Job& job, std::int64_t pipeline_rank);

}  // namespace ebb
