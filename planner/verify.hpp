// Verification of a Plan: hazards that would corrupt data or leak memory on real hardware, found by reachability over
// the dependency graph, not by one simulated order. Plans of several ranks together: verify_together.hpp.
#pragma once

#include <vector>

#include "models/plan.hpp"
#include "models/timeline.hpp"
#include "planner/hazard.hpp"

namespace ebb {

/// All hazards, in op order (then what outlives its phase, then leaks). An empty list: the plan is safe. Of several
/// accesses that are unordered with one op the nearest are named; those behind them follow. With a dependency on a
/// later op (not_topological) nothing else is examined. O((ops + deps) * streams + accesses * log ops): some
/// milliseconds for 5,000 ops.
std::vector<Hazard> verify(const Plan& plan);
/// The same, and whether live device bytes can exceed `budget` in any order that the dependencies allow; exactly what
/// is compared stands in peak_bound.hpp.
std::vector<Hazard> verify(const Plan& plan, Bytes budget);

/// Ops of the chain that decides the makespan, first to last.
std::vector<OpId> critical_path(const Plan& plan, const Timeline& timeline);

}  // namespace ebb
