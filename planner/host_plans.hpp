// HostPlans: the plans of all ranks of one host, and what the simulation says of each: what `ebb` writes for a replay.
//
// Why not the plans that the search simulates: those stand for every rank with equal shards. A replay needs each rank's
// own, whose shards lie elsewhere in the buffers.
#pragma once

#include <vector>

#include "models/job.hpp"
#include "models/plan.hpp"
#include "models/timeline.hpp"

namespace ebb {

struct HostPlans {
  std::vector<Plan> plans;  // by place on the host: ranks ascending; with their parameters
  std::vector<Timeline> timelines;
};

/// Of the host that carries the slowest rank. Every plan is verified. Preconditions: check(job) passed, and the
/// candidate's parameters are valid.
HostPlans host_plans(const Job& job, const Candidate& candidate);

/// All parts of the life of every rank of that host, ascending by rank, then part. Every plan is verified, and so is
/// that each part leaves what the next begins with.
HostPlans host_life(const Job& job, const Candidate& candidate);

}  // namespace ebb
