// Verification of a Plan: hazards that would corrupt data or leak memory on real hardware, found by reachability over
// the dependency graph, not by one simulated order.
#pragma once

#include <string>
#include <vector>

#include "models/plan.hpp"
#include "models/timeline.hpp"

namespace ebb {

enum class HazardKind : std::uint8_t {
  not_topological,      // a dependency on a later op
  use_before_allocate,  // an access not ordered after the buffer's allocation
  use_after_release,    // an access not ordered before the storage is handed back
  unordered_access,     // two accesses, one a write, to overlapping bytes without an order
  double_release,
  leak,          // allocated, never released, and not `initial`; or allocated again while alive
  issued_early,  // may start before the host op that precedes it in the plan has ended: a host issues in order
};
std::string_view name_of(HazardKind kind);

struct Hazard {
  HazardKind kind = HazardKind::leak;
  OpId first;
  OpId second;  // none() where one op tells it all
  BufferId buffer;
  std::string text;  // one sentence naming ops and buffer
};

/// All hazards, in op order (leaks last). An empty list: the plan is safe. Of several accesses that are unordered with
/// one op the nearest are named; those behind them follow. With a dependency on a later op (not_topological) nothing
/// else is examined. O((ops + deps) * streams + accesses * log ops): some milliseconds for 5,000 ops.
std::vector<Hazard> verify(const Plan& plan);

/// Ops of the chain that decides the makespan, first to last.
std::vector<OpId> critical_path(const Plan& plan, const Timeline& timeline);

}  // namespace ebb
