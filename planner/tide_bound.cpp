#include <algorithm>
#include <cmath>

#include "models/errors.hpp"
#include "planner/tide_parts.hpp"

// The fluid relaxation. State is S bytes of sand. Every grain is on the device when it is updated, all updates come
// between the first and the last update of the step, and the same step repeats.
//
// A lower bound. Let q be the room at the peak and look at the w grains that are on the device at that moment:
// w <= min(q, S), and w <= the room between steps if they are to stay there. Each of the other S - w grains comes in
// after the peak and before its update, and leaves after its update and before the next peak, since its update made the
// host's copy old. Of these let x be on the device at the first update and y be dirty there after the step; then
// S - w - x must come in and S - w - y must leave within the step's T seconds, h and d being the rates:
//
//   T >= (S - w - x) / h2d,   T >= (S - w - y) / d2h,   T >= ((S - w - x) + (S - w - y)) / both,   T >= S / adam_state
//
// The largest x, given w: until time t no more than room(t) - w has come in, after it no more than h2d (F - t), where F
// is the first update's time. Bringing grains in at full rate whenever there is room attains the least of these (grains
// are alike: an earliest-deadline schedule of one class, so no order is better):
//
//   x = min over t in [0, F] of (room(t) - w + h2d (F - t)), h2d F, S - w and the step's room - w
//
// and with room constant from entry to entry, t matters only where an entry ends. The largest y is the mirror: by time
// t of the rise d2h t has left, and what has not must fit: y = min over t of (room(t) - w + d2h t), at the peak d2h t
// alone, S - w, the step's room - w; t matters only where an entry begins.
//
// All three at once (the exchange). Let another schedule have w' < w grains at the peak. Replace w - w' of its
// travellers by grains that never move. Both minima say that w + x does not fall when w grows: every term but h2d F has
// w in it once, and that one lets w + x grow with w. The same holds for w + y. So every bound on T falls or stays, and
// w = min(q, S, step room) is best, with its x and y.
//
// Delays do not help. Keeping the first update (or the forward) waiting for e seconds lets h2d e more in (d2h e more
// out), which shortens T by at most e, because h2d <= both and d2h <= both.
//
// The bound is attained: move both ways at the constant rates (S - w - x) / T and (S - w - y) / T and update travellers
// at the constant rate (S - w) / T. What has been updated is never more than what has come in,
// (S - w) t / T <= x + (S - w - x) t / T, nor less than what has left; and the travellers on the device go in a
// straight line from x to y, both of which fit.
//
// What even sharing loses: while both directions move, the link gives each about half of `both`, whatever the fluid
// optimum would like. If both < h2d + d2h and x != y, the direction with less to move is done early, and the other one
// alone does not fill `both`. With n <= m the two amounts to move in the step and r the rate of one direction alone,
// the step takes 2 n / both + (m - n) / r, up to a ninth more than the bound at both = 1.75 r, a sixth at 1.5 r. No
// order of copies changes that: both can move for no longer than 2 n / both, and each direction's rest takes its 1 / r
// alone.

namespace ebb {

namespace {

Seconds updates_time(const TideProblem& p) { return p.piece * p.pieces / p.adam_state; }

/// The fluid relaxation's bound when `in` and `out` bytes must move within the step.
Seconds least_step(const TideProblem& p, double in, double out) {
  return std::max(updates_time(p), Seconds{std::max({(in + out) / p.both.value, in / p.h2d.value, out / p.d2h.value})});
}

}  // namespace

namespace tide {

void check(const TideProblem& p) {
  EBB_ASSERT(p.piece > Bytes{0} && p.pieces > 0);
  EBB_ASSERT(p.h2d.value > 0 && p.d2h.value > 0 && p.both.value > 0 && p.adam_state.value > 0);
  EBB_ASSERT(p.latency >= Seconds{0} && p.step_room >= Bytes{0});
  for (const auto* curve : {&p.rise, &p.fall}) {
    for (std::size_t i = 0; i < curve->size(); ++i) {
      const TideRoom& entry = (*curve)[i];
      EBB_ASSERT(entry.room >= Bytes{0} && entry.until >= (i == 0 ? Ticks{0} : (*curve)[i - 1].until));
      if (i == 0) continue;
      const Bytes before = (*curve)[i - 1].room;
      EBB_ASSERT(curve == &p.rise ? entry.room <= before : entry.room >= before);
    }
  }
}

Bytes peak_room(const TideProblem& p) {
  Bytes room = p.step_room;
  if (!p.rise.empty()) room = std::min(room, p.rise.back().room);
  if (!p.fall.empty()) room = std::min(room, p.fall.front().room);
  return room;
}

Seconds shared_step(const TideProblem& p, double in, double out) {
  const double h = rate_in(p).value;
  const double d = rate_out(p).value;
  const double in_shared = std::min(h, std::max(p.both.value / 2, p.both.value - d));
  const double out_shared = std::min(d, std::max(p.both.value / 2, p.both.value - h));
  double seconds = 0;
  if (in / in_shared <= out / out_shared) seconds = in / in_shared * (1 - out_shared / d) + out / d;
  if (in / in_shared > out / out_shared) seconds = out / out_shared * (1 - in_shared / h) + in / h;
  return std::max(updates_time(p), Seconds{seconds});
}

}  // namespace tide

TideBound fluid_bound(const TideProblem& problem) {
  using namespace tide;
  check(problem);
  const Bytes state = problem.piece * problem.pieces;
  TideBound bound;
  if (problem.may_stay) bound.kept = std::min(state, peak_room(problem));
  const Bytes moving = state - bound.kept;
  const auto moved = [](BytesPerSecond rate, Ticks time) {
    return Bytes{static_cast<std::int64_t>(std::ceil(rate.value * to_seconds(time).value))};
  };
  const Ticks first_update = length(problem.fall);
  const Bytes step_room = problem.step_room - bound.kept;
  bound.in = std::min({moving, step_room, moved(rate_in(problem), first_update)});
  for (const TideRoom& entry : problem.fall) {
    bound.in = std::min(bound.in, entry.room - bound.kept + moved(rate_in(problem), first_update - entry.until));
  }
  if (problem.may_stay) bound.out = std::min({moving, step_room, moved(rate_out(problem), length(problem.rise))});
  Ticks begin{0};
  for (const TideRoom& entry : problem.rise) {
    bound.out = std::min(bound.out, entry.room - bound.kept + moved(rate_out(problem), begin));
    begin = entry.until;
  }
  const auto in_step = static_cast<double>((moving - bound.in).value);
  const auto out_step = static_cast<double>((moving - bound.out).value);
  bound.step = least_step(problem, in_step, out_step);
  bound.shared = shared_step(problem, in_step, out_step);
  return bound;
}

}  // namespace ebb
