// How long the optimizer's step takes under one tidal schedule: its copies and updates, executed in order.
//
// Why: the solver compares a few schedules near the fluid optimum, and what tells them apart (a place that is freed a
// copy too late, a first piece that nothing overlaps) is what a closed form leaves out. Not here: the plan and its
// simulation (planner/lower.hpp, sim/); this knows one rank, pieces of one size and fixed rates.
#pragma once

#include "planner/tide_schedule.hpp"

namespace ebb {

/// Time from when updates may begin to the last update or copy of the step. Of the copy of the last piece to arrive
/// `late` is left when it begins. Both directions share `both` evenly where it binds, and a copy's latency takes no
/// bandwidth. Cost: proportional to the pieces. Preconditions: as TideSchedule says; schedule.step is not read.
Seconds step_time(const TideProblem& problem, const TideSchedule& schedule, Ticks late);

}  // namespace ebb
