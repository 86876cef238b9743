// Where and when pieces of optimizer state move under the tidal policy: how many never move, how many come in before
// the optimizer's first update, how many stay behind to leave during the next forward, and which place of the device
// each piece takes.
//
// Why: the link idles through forward and backward, whose memory rises and falls; what moves there costs no time. Input
// is the room that the rest of the step leaves for state, output is a schedule of whole pieces. Not here: the curve of
// that room (the caller's), ops and buffers (the lowering's). tide_schedule.cpp proves the bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/units.hpp"

namespace ebb {

/// Room for state (the cap less everything else alive) up to `until`, from where the entry before ends.
struct TideRoom {
  Ticks until;
  Bytes room;
};

/// One rank's step. Rates are this rank's, with what the host's other ranks take already divided.
struct TideProblem {
  Bytes piece;              // of state, in one piece; the last may be smaller on the device, never larger
  std::int64_t pieces = 0;  // P
  // From the start of the step's plan to the peak; room never increases. Empty: nothing can leave before the peak.
  std::vector<TideRoom> rise;
  // From the peak (0) to the optimizer's first update: backward, finalize, norm and clip; room never decreases. Empty:
  // nothing can come in before the first update.
  std::vector<TideRoom> fall;
  Bytes step_room{0};  // while the optimizer steps, and between steps
  BytesPerSecond h2d{0};
  BytesPerSecond d2h{0};
  BytesPerSecond both{0};        // the two directions' sum when both move
  BytesPerSecond adam_state{0};  // bytes of state that the update takes on the device: a floor of the step
  Seconds latency{0};            // of a copy
  bool may_stay = true;          // false: nothing stays on the device beyond the step (kept = tail = 0)
};

/// The optimum of the fluid relaxation, in which state moves in infinitesimal pieces.
struct TideBound {
  Bytes kept{0};    // w: never moves
  Bytes in{0};      // x: comes in before the first update
  Bytes out{0};     // y: leaves after the last update
  Seconds step{0};  // least exposed time: from the first update to the last update or copy, and waits elsewhere
  // The same when the link gives each direction an even share of `both` while both move, as copy engines get it.
  Seconds shared{0};
};

/// `kept` pieces never move. The others are numbered 0 .. moving - 1 in the order in which the optimizer takes them;
/// the kept ones are updated in between (kept_before). Places number from 0, the one farthest from the activations;
/// each holds one piece at a time.
///  - A piece k >= places takes its place over from piece k - places, which has left by then.
///  - Of the first `places` pieces those in places 0 .. arrive - 1 arrive: they begin to come in before the first
///    update, each as soon as it fits, by ascending place. The copy of the last may end after the first update. All
///    others come in during the step, in the order of their numbers.
///  - Of the last `places` pieces those in places 0 .. tail - 1 stay, and leave in the next step by descending place,
///    the first at the plan's start; the forward waits for them where it needs their room. All others leave during the
///    step, in the order of their numbers. A piece may both arrive and stay.
struct TideSchedule {
  std::int64_t places = 0;  // N, without the kept pieces' room
  std::int64_t kept = 0;    // w
  std::int64_t moving = 0;  // P - w
  std::int64_t arrive = 0;  // a
  std::int64_t tail = 0;    // b
  // A permutation of 0 .. places - 1: piece k lies in place ring[k mod places].
  std::vector<std::int64_t> ring{};
  Seconds step{0};  // predicted: from the time at which updates may begin to the last update or copy of the step
  Seconds wait{0};  // predicted: of the forward, for the last of what stays; less than a copy

  Seconds exposed() const { return step + wait; }
  std::int64_t place(std::int64_t piece) const { return ring[static_cast<std::size_t>(piece % places)]; }
  bool arrives(std::int64_t piece) const { return piece < places && place(piece) < arrive; }
  bool stays(std::int64_t piece) const { return piece >= moving - places && place(piece) < tail; }
  /// Kept pieces whose update comes before moving piece `piece`'s: evenly among these, before the first and after the
  /// last, too.
  std::int64_t kept_before(std::int64_t piece) const { return kept * (piece + 1) / (moving + 1); }
};

/// Preconditions of both, asserted: piece, pieces and all rates > 0; latency and rooms >= 0; entries in order of time;
/// rise not increasing, fall not decreasing.
TideBound fluid_bound(const TideProblem& problem);
/// Further precondition, asserted: step_room holds a piece. The caller tells the user when a cap is too small for it.
TideSchedule solve_tide(const TideProblem& problem);

}  // namespace ebb
