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

/// The rules of sim/simulate.hpp in floating-point seconds: at every event it looks at every op of the plan, and it
/// finds link rates by bisection. Shares no code with sim/ but the costs of ops without bytes on the link.
std::vector<Span> naive_simulate(const Plan& plan, const Cluster& cluster, const sim::Sharing& sharing);

}  // namespace ebb::test
