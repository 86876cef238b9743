// What the fluid bound (tide_bound.cpp) and the schedule of whole pieces (tide_schedule.cpp) both derive from a
// problem.
#pragma once

#include <algorithm>
#include <vector>

#include "planner/tide_schedule.hpp"

namespace ebb::tide {

/// Asserts what tide_schedule.hpp demands of a problem.
void check(const TideProblem& problem);

inline BytesPerSecond rate_in(const TideProblem& p) { return std::min(p.h2d, p.both); }
inline BytesPerSecond rate_out(const TideProblem& p) { return std::min(p.d2h, p.both); }

inline Ticks length(const std::vector<TideRoom>& curve) { return curve.empty() ? Ticks{0} : curve.back().until; }

/// Room at the peak for what also stays through the step.
Bytes peak_room(const TideProblem& problem);

/// The least time of a step in which `in` and `out` bytes move, when both directions get even shares of `both` while
/// both move: they do until one is done, then the other one goes on alone.
Seconds shared_step(const TideProblem& problem, double in, double out);

}  // namespace ebb::tide
