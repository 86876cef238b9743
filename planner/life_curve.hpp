// The curve of live bytes over a steady step, from a replayed trace and the simulated ends of its phases.
#pragma once

#include <array>
#include <vector>

#include "planner/life.hpp"
#include "planner/life_replay.hpp"

namespace ebb {

/// Seconds since the step began.
struct StepTimes {
  Seconds backward_end{0};
  Seconds finalize_end{0};
  Seconds step_end{0};
};

/// A point an event, in order. `live`: LifeMemory::steady of the same part.
std::vector<CurvePoint> live_curve(const TracePart& step, const std::vector<LivePoint>& live, const StepTimes& times);

}  // namespace ebb
