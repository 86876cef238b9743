// PeakBound: how many device bytes a plan may hold at a time, whatever the durations. What a budget is compared with.
//
// What it computes. A life of a buffer begins with its allocation a and ends when its storage is handed back: when its
// release and the release's `after` have ended. At the moment an allocation p starts, a life counts unless
//
//   it has been handed back:  release and `after` both end before p starts in every order, or
//   it has not begun:         p starts before a in every order.
//
// The bound is the largest sum of bytes of the lives that count, over all p, and over the buffers that exist before the
// plan. It is sound: take any moment of any order, and let p be the last in the plan of the allocations whose lives are
// alive; then none of these lives has been handed back before p in every order, nor does p come before one of their
// allocations in every order. It is exact where the allocations are ordered among themselves, as in every lowered plan
// (they are on one stream): then some order holds all of these lives at once. Where the hand-backs are ordered with the
// allocations as well it is the peak of every simulation (StepSummary::peak_held).
#pragma once

#include <optional>
#include <vector>

#include "planner/hazard.hpp"

namespace ebb {

struct PeakBound {
  Bytes bytes{0};
  OpId at;                      // the allocation p; none(): what exists before the plan
  std::vector<BufferId> alive;  // largest first
  /// The hand-back that may come before `at` and need not: the largest such. Adding the edge lowers the sum at `at`.
  std::optional<Edge> missing;
};

/// Precondition: no op depends on a later one. O((ops + deps) * streams + lives * live ones), times the number of lives
/// where allocations stand on several streams.
PeakBound peak_bound(const Plan& plan);

/// One hazard, over_budget, when peak_bound() is above `budget`: it names the op, the excess and the buffers alive.
void find_excess(const Plan& plan, Bytes budget, std::vector<Hazard>& hazards);

}  // namespace ebb
