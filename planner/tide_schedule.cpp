#include "planner/tide_schedule.hpp"

#include <algorithm>
#include <optional>

#include "models/errors.hpp"
#include "planner/tide_flow.hpp"
#include "planner/tide_parts.hpp"

// What whole pieces lose against the fluid bound (tide_bound.cpp): about one copy and update when nothing has come in
// at the first update, one update and copy when nothing may stay, the rounding down of w, what a direction waits for a
// place in a ring that is exactly full, and a copy's latency for each piece that moves in the step. That x and y are no
// whole numbers costs little: the last piece to arrive may be on its way at the first update, and the forward may wait
// for what is left of the last one to leave, where that is less than moving it in the step. (The bound even covers
// keeping other pieces in every step, which one plan for all steps cannot.)
//
// Places. Pieces that come in during the step take places over in the order in which these are freed, so none waits for
// a place while another is empty: a ring. Arrivals need the far places 0 .. a - 1, the only ones there are while
// activations are large, and what stays needs 0 .. b - 1, so that the nearest leave first. So of the two sets of slots
// of the ring, those that arrive (in its first round) and those that stay (in its last), one contains the other. Best
// would be that the first pieces arrive, lest updates wait, and that the last ones stay, lest the last copies out
// overlap nothing. So: the smaller of the two complements lies at its own best end, and the larger one is that and
// slots at the best end of its own; one that comes late among the early does no harm once there is something else to
// copy out. A handful of (a, b, N) near the largest a and b are compared.

namespace ebb {

namespace {

using namespace tide;

constexpr std::int64_t kFlowPlaces = 3;  // one is filled, one updated, one emptied

Ticks copy_time(const TideProblem& p, BytesPerSecond rate) {
  return std::max(Ticks{1}, to_ticks(p.latency + p.piece / rate));
}

struct Arrivals {
  std::int64_t count = 0;
  Ticks late{0};  // what is left of the last copy at the first update
};

/// Pieces that begin to come in from the peak to the first update, one after another, each as soon as it fits.
Arrivals arrivals(const TideProblem& p, std::int64_t kept, std::int64_t most) {
  const Ticks copy = copy_time(p, rate_in(p));
  const Ticks first_update = length(p.fall);
  Arrivals in;
  Ticks engine_free{0};
  Ticks begin{0};
  for (const TideRoom& entry : p.fall) {
    const std::int64_t fit = std::min(most, entry.room.value / p.piece.value - kept);
    for (; in.count < fit; ++in.count) {
      const Ticks start = std::max(engine_free, begin);
      if (start >= entry.until) break;
      engine_free = start + copy;
    }
    begin = entry.until;
  }
  in.late = std::max(Ticks{0}, engine_free - first_update);
  return in;
}

/// How long the forward waits when `tail` pieces stay: they are copied out one after another from the plan's start,
/// must make room at every entry, and all have left at the peak.
Ticks forward_wait(const TideProblem& p, std::int64_t kept, std::int64_t tail) {
  const Ticks copy = copy_time(p, rate_out(p));
  Ticks wait = std::max(Ticks{0}, copy * tail - length(p.rise));
  Ticks begin{0};
  for (const TideRoom& entry : p.rise) {
    const std::int64_t gone = tail - (entry.room.value / p.piece.value - kept);
    if (gone > 0) wait = std::max(wait, copy * gone - begin);
    begin = entry.until;
  }
  return wait;
}

/// The most pieces that may stay so that the forward waits for less than one copy.
std::int64_t departures(const TideProblem& p, std::int64_t kept, std::int64_t most) {
  const Ticks copy = copy_time(p, rate_out(p));
  // One piece more means one copy more to wait for, once there is any wait.
  std::int64_t count = most;
  while (count > 0) {
    const Ticks wait = forward_wait(p, kept, count);
    if (wait < copy) break;
    count -= wait.value / copy.value;
  }
  return count;
}

/// The order of places in the ring.
std::vector<std::int64_t> numbered_ring(const TideSchedule& s) {
  const auto size = static_cast<std::size_t>(s.places);
  const auto in_last_round = [&](std::int64_t offset) {
    return static_cast<std::size_t>((s.moving + offset) % s.places);  // the slot of piece moving - places + offset
  };
  std::vector<bool> comes(size);   // during the step, in the first round
  std::vector<bool> leaves(size);  // during the step, in the last round
  const std::int64_t coming = s.places - s.arrive;
  const std::int64_t leaving = s.places - s.tail;
  std::int64_t marked = std::min(coming, leaving);
  for (std::int64_t i = 0; i < marked; ++i) {
    const std::size_t slot = coming < leaving ? static_cast<std::size_t>(s.arrive + i) : in_last_round(i);
    comes[slot] = leaves[slot] = true;
  }
  for (std::int64_t slot = s.places - 1; marked < coming; --slot) {
    std::vector<bool>::reference taken = comes[static_cast<std::size_t>(slot)];
    if (!taken) ++marked;
    taken = true;
  }
  for (std::int64_t offset = 0; marked < leaving; ++offset) {
    std::vector<bool>::reference taken = leaves[in_last_round(offset)];
    if (!taken) ++marked;
    taken = true;
  }
  std::vector<std::int64_t> ring(size);
  std::int64_t next_inner = 0;
  std::int64_t next_outer = std::min(s.arrive, s.tail);
  std::int64_t next_rest = std::max(s.arrive, s.tail);
  for (std::size_t slot = 0; slot < size; ++slot) {
    const bool neither = comes[slot] && leaves[slot];
    const bool one = comes[slot] || leaves[slot];
    ring[slot] = neither ? next_rest++ : one ? next_outer++ : next_inner++;
  }
  return ring;
}

/// What is compared: seconds, and more when fewer than three places are left for what moves. Then a copy that is late
/// for once stops the other direction too; it has to be worth it.
double score(const TideSchedule& schedule) {
  constexpr double kNarrow = 1.05;
  const bool narrow = schedule.places < std::min(kFlowPlaces, schedule.moving);
  return schedule.exposed().value * (narrow ? kNarrow : 1.0);
}

/// Compares schedules and keeps the fastest; of equals the first.
class Search {
 public:
  explicit Search(const TideProblem& problem)
      : problem_(problem), room_(problem.step_room.value / problem.piece.value) {}

  TideSchedule run();

 private:
  void try_kept(std::int64_t kept);
  void try_places(TideSchedule candidate, std::int64_t most, Ticks late);
  void consider(TideSchedule candidate, Ticks late);

  static constexpr std::int64_t kNear = 3;  // fewer pieces that arrive or stay, more places than they need

  const TideProblem& problem_;
  std::int64_t room_;  // pieces in the step
  std::optional<TideSchedule> best_;
};

TideSchedule Search::run() {
  if (!problem_.may_stay) {
    try_kept(0);
    return std::move(*best_);
  }
  const std::int64_t at_peak = std::min(problem_.pieces, peak_room(problem_).value / problem_.piece.value);
  // As many as leave three places for the others, and more where score() says so.
  const auto flows = [&](std::int64_t kept) { return room_ - kept >= std::min(kFlowPlaces, problem_.pieces - kept); };
  std::int64_t kept = at_peak;
  while (kept > 0 && !flows(kept)) --kept;
  for (; kept <= at_peak && (kept < room_ || kept == problem_.pieces); ++kept) try_kept(kept);
  return std::move(*best_);
}

void Search::try_kept(std::int64_t kept) {
  const std::int64_t most = std::min(problem_.pieces, room_) - kept;
  const Arrivals in = arrivals(problem_, kept, most);
  const std::int64_t tail = problem_.may_stay ? departures(problem_, kept, most) : 0;
  TideSchedule candidate;
  candidate.kept = kept;
  candidate.moving = problem_.pieces - kept;
  for (candidate.arrive = in.count; candidate.arrive >= std::max<std::int64_t>(0, in.count - kNear);
       --candidate.arrive) {
    const Ticks late = candidate.arrive == in.count ? in.late : Ticks{0};
    for (candidate.tail = tail; candidate.tail >= std::max<std::int64_t>(0, tail - kNear); --candidate.tail) {
      try_places(candidate, most, late);
    }
  }
}

void Search::try_places(TideSchedule candidate, std::int64_t most, Ticks late) {
  const std::int64_t least = std::min(most, std::max<std::int64_t>({candidate.arrive, candidate.tail, 1}));
  candidate.wait = to_seconds(forward_wait(problem_, candidate.kept, candidate.tail));
  // Of equals the one with more places: what is late for once has more room to catch up.
  for (candidate.places = std::min(most, least + kNear); candidate.places >= least; --candidate.places) {
    consider(candidate, late);
  }
  candidate.places = most;
  if (most > least + kNear) consider(candidate, late);
}

void Search::consider(TideSchedule candidate, Ticks late) {
  const std::int64_t moving = candidate.moving;
  const auto bytes = static_cast<double>(problem_.piece.value);
  const double late_bytes = std::min(bytes, to_seconds(late).value * rate_in(problem_).value);
  const Seconds least = shared_step(problem_, bytes * static_cast<double>(moving - candidate.arrive) + late_bytes,
                                    bytes * static_cast<double>(moving - candidate.tail));
  constexpr double kSame = 1e-9;  // relative: rounding, not a difference
  if (best_ && score(*best_) * (1 - kSame) <= (least + candidate.wait).value) return;
  candidate.ring = numbered_ring(candidate);
  candidate.step = step_time(problem_, candidate, late);
  if (best_ && score(candidate) >= score(*best_) * (1 - kSame)) return;
  best_ = std::move(candidate);
}

}  // namespace

TideSchedule solve_tide(const TideProblem& problem) {
  check(problem);
  EBB_ASSERT(problem.step_room >= problem.piece);
  return Search(problem).run();
}

}  // namespace ebb
