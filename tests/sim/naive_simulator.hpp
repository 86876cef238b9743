// A second simulator, written to be obviously right and nothing else: the oracle of the property tests.
#pragma once

#include <vector>

#include "models/cluster.hpp"
#include "models/plan.hpp"
#include "sim/simulate.hpp"

namespace ebb::test {

struct Span {
  double start = -1;  // seconds
  double end = -1;
};

/// The rules of sim/simulator.hpp and sim/fabric.hpp in floating-point seconds, for every place of a host by itself: at
/// every event it looks at every op of every plan, and it finds rates by bisection on what is feasible. Folds nothing,
/// and shares no code with sim/ but the costs of ops. Place p runs *plans[p] as global rank first_rank + p.
std::vector<std::vector<Span>> naive_simulate(const std::vector<const Plan*>& plans, std::int64_t first_rank,
                                              const Cluster& cluster);

/// Place 0 of `ranks_per_host` that all run `plan`.
std::vector<Span> naive_simulate(const Plan& plan, const Cluster& cluster, const sim::Sharing& sharing);

}  // namespace ebb::test
