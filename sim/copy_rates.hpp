// copy_rates: how fast copies of one rank run, alone and against each other, when all ranks of its host do the same.
// For closed forms (the planner's bounds); the simulator solves the whole host (fabric.hpp).
#pragma once

#include "models/cluster.hpp"
#include "sim/simulate.hpp"

namespace ebb::sim {

struct CopyRates {
  BytesPerSecond h2d;   // alone
  BytesPerSecond d2h;   // alone
  BytesPerSecond both;  // sum of both directions at once, at the size of copies at which it is highest
};

/// Preconditions: every limit > 0 (infinity: none), ranks_per_host >= 1.
CopyRates copy_rates(const Cluster& cluster, const Sharing& sharing);

}  // namespace ebb::sim
