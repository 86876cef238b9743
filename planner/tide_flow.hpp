// How long the optimizer's step takes under one tidal schedule: its copies and updates, executed in order.
//
// Why: the solver compares a few schedules near the fluid optimum, and what tells them apart (a place that is freed a
// copy too late, a first piece that nothing overlaps) is what a closed form leaves out. Not here: the plan and its
// simulation (planner/lower_tidal.cpp, sim/); this knows one rank, pieces of one size and fixed rates.
#pragma once

#include <cstdint>

#include "models/units.hpp"

namespace ebb {

struct TideFlow {
  std::int64_t pieces = 0;  // that move
  std::int64_t places = 0;
  std::int64_t arrive = 0;  // the first ones, there before the step, except for
  std::int64_t late = -1;   // the one of them whose copy still runs; -1: none
  Seconds late_by;          // what is left of it, alone on the link
  std::int64_t tail = 0;    // the last ones, which stay
  double copy_bytes = 0;    // of a piece
  double h2d = 0;           // bytes per second
  double d2h = 0;
  double both = 0;
  Seconds latency;  // of a copy: it takes no bandwidth meanwhile
  Seconds update;   // of a piece
  Seconds kept;     // update of the pieces that do not move, after the first `arrive`
};

/// Time from when updates may begin to the last update or copy. Both directions share `both` evenly where it binds.
/// Piece k comes in after piece k - places has left. Cost: proportional to the pieces. Preconditions: 0 <= arrive, tail
/// <= places <= pieces; places > 0 unless pieces = 0; late < arrive.
Seconds step_time(const TideFlow& flow);

}  // namespace ebb
