// sim::simulate: a Plan and a Cluster in, the predicted Timeline out.
#pragma once

#include "models/cluster.hpp"
#include "models/plan.hpp"
#include "models/timeline.hpp"

namespace ebb::sim {

/// How the rank shares its host: `ranks_per_host` ranks with the same schedule load the host's common limits, so each
/// gets its share (symmetric ranks fold into one).
struct Sharing {
  std::int64_t ranks_per_host = 1;
};

/// Deterministic. Precondition: plan.ops is topologically ordered (verify() says so).
Timeline simulate(const Plan& plan, const Cluster& cluster, const Sharing& sharing);

}  // namespace ebb::sim
