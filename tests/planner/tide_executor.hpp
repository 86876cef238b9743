// A discrete simulator of one tidal schedule, for tests: a whole period of the steady state, in which both copy engines
// take their copies first in, first out, and nothing starts before its place is free. It knows the rules that
// planner/tide_schedule.hpp states and none of the solver's formulas.
#pragma once

#include <string>

#include "planner/tide_schedule.hpp"

namespace ebb {

struct TideRun {
  double step = 0;      // seconds from when updates may begin to the last update or copy
  double wait = 0;      // of the forward, for room
  std::string problem;  // the first rule that was broken; empty: none
};

TideRun execute_tide(const TideProblem& problem, const TideSchedule& schedule);

}  // namespace ebb
