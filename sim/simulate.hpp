// sim::simulate: a Plan and a Cluster in, the predicted Timeline out.
#pragma once

#include "models/cluster.hpp"
#include "models/plan.hpp"
#include "models/timeline.hpp"

namespace ebb::sim {

/// How the rank shares its host: `ranks_per_host` ranks that all do the same, at the places 0, 1, ... of the host. They
/// fold into one; where some places are worse off than others, it stands for the worst.
struct Sharing {
  std::int64_t ranks_per_host = 1;
};

/// Deterministic. Precondition: plan.ops is topologically ordered (verify() says so).
Timeline simulate(const Plan& plan, const Cluster& cluster, const Sharing& sharing);

}  // namespace ebb::sim
