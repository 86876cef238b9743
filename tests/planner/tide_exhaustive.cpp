#include "tests/planner/tide_exhaustive.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>

namespace ebb {

namespace {

/// Pieces are alike, so a state counts those that move. in and out: what is left of the copy that runs, latency
/// included; 0: none.
struct State {
  int clock = 0;    // units of fall, then (from fall + 1, the step being between) of rise
  int host = 0;     // still to come in
  int waiting = 0;  // on the device, not updated
  int updated = 0;  // on the device, updated, newer than the host's copy
  int kept = 0;     // kept ones that are not updated
  int in = 0;
  int out = 0;
};

class Exhaustive {
 public:
  Exhaustive(const TinyTide& tide, int kept) : t_(tide), kept_(kept) {
    const auto side = static_cast<std::size_t>(t_.pieces) + 1;
    best_.assign(static_cast<std::size_t>(last() + 1) * side * side * side * side * copy_states() * copy_states(),
                 kUnknown);
  }
  int run();

 private:
  static constexpr std::uint8_t kUnknown = 255;

  int resident(const State& s) const {
    return kept_ + s.waiting + s.updated + (s.in > 0 ? 1 : 0) + (s.out > 0 ? 1 : 0);
  }
  int fall() const { return static_cast<int>(t_.fall.size()); }
  int last() const { return fall() + 1 + static_cast<int>(t_.rise.size()); }  // the clock at the next peak
  std::size_t copy_states() const { return static_cast<std::size_t>(t_.work + t_.latency) + 1; }
  std::size_t index(const State& s) const {
    const auto side = static_cast<std::size_t>(t_.pieces) + 1;
    std::size_t i = static_cast<std::size_t>(s.clock);
    for (const int count : {s.host, s.waiting, s.updated, s.kept}) i = i * side + static_cast<std::size_t>(count);
    i = i * copy_states() + static_cast<std::size_t>(s.in);
    return i * copy_states() + static_cast<std::size_t>(s.out);
  }
  void reach(const State& state, int cost, bool free);
  void expand(const State& state, int cost);
  void pass_unit(const State& state, int cost, int room, bool clock_runs);
  void move(State state, int cost, int room, bool clock_runs, int by_in, int by_out);

  const TinyTide& t_;
  int kept_;
  std::vector<std::uint8_t> best_;
  std::deque<std::pair<State, int>> open_;
};

void Exhaustive::reach(const State& state, int cost, bool free) {
  // The step's room holds before its first moment and after its last, too.
  if (state.clock == fall() && resident(state) > t_.step_room) return;
  std::uint8_t& known = best_[index(state)];
  if (cost >= known) return;
  known = static_cast<std::uint8_t>(cost);
  if (free) open_.emplace_front(state, cost);
  if (!free) open_.emplace_back(state, cost);
}

/// One unit of time with these amounts moved.
void Exhaustive::move(State state, int cost, int room, bool clock_runs, int by_in, int by_out) {
  if (resident(state) > room) return;
  const bool stepping = state.clock == fall();
  const bool updates = stepping && t_.update == 1 && state.waiting > 0;
  // A kept piece's update has no successor: it takes its turn when nothing else does.
  if (stepping && !updates && state.kept > 0) --state.kept;
  if (state.in > 0) {
    state.in = std::max(0, state.in - by_in);
    if (state.in == 0) ++state.waiting;
  }
  if (state.out > 0) state.out = std::max(0, state.out - by_out);
  if (updates) {
    --state.waiting;
    ++state.updated;
  }
  if (clock_runs) ++state.clock;
  reach(state, cost + (clock_runs ? 0 : 1), clock_runs);
}

void Exhaustive::pass_unit(const State& from, int cost, int room, bool clock_runs) {
  for (const bool start_in : {false, true}) {
    for (const bool start_out : {false, true}) {
      State state = from;
      if (start_in) {
        if (state.in > 0 || state.host == 0) continue;
        --state.host;
        state.in = t_.work + t_.latency;
      }
      if (start_out) {
        if (state.out > 0 || state.updated == 0) continue;
        --state.updated;
        state.out = t_.work + t_.latency;
      }
      // Latency takes its unit whatever the links do; a copy beyond it moves.
      const bool in_flows = state.in > 0 && state.in <= t_.work;
      const bool out_flows = state.out > 0 && state.out <= t_.work;
      if (in_flows && out_flows) {
        for (int by_in = 0; by_in <= std::min(t_.h2d, t_.both); ++by_in) {
          move(state, cost, room, clock_runs, by_in, std::min(t_.d2h, t_.both - by_in));
        }
      } else {
        move(state, cost, room, clock_runs, in_flows ? std::min(t_.h2d, t_.both) : 1,
             out_flows ? std::min(t_.d2h, t_.both) : 1);
      }
    }
  }
}

void Exhaustive::expand(const State& from, int cost) {
  State state = from;
  if (state.clock == fall()) {
    if (t_.update == 0) {
      state.updated += state.waiting;
      state.waiting = 0;
      state.kept = 0;
    }
    pass_unit(state, cost, t_.step_room, false);
    if (state.host == 0 && state.in == 0 && state.waiting == 0 && state.kept == 0) {
      ++state.clock;
      reach(state, cost, true);
    }
    return;
  }
  const auto now = static_cast<std::size_t>(state.clock < fall() ? state.clock : state.clock - fall() - 1);
  const std::vector<int>& rooms = state.clock < fall() ? t_.fall : t_.rise;
  if (now < rooms.size()) pass_unit(state, cost, rooms[now], true);
  // Waiting before a unit begins: backward has released what it releases, forward has not allocated.
  const bool falling = state.clock < fall();
  const int waiting_room = falling ? rooms[now] : now == 0 ? t_.step_room : rooms[now - 1];
  pass_unit(state, cost, waiting_room, false);
}

int Exhaustive::run() {
  reach({.clock = 0, .host = t_.pieces - kept_, .kept = kept_}, 0, true);
  while (!open_.empty()) {
    const auto [state, cost] = open_.front();
    open_.pop_front();
    if (cost > best_[index(state)]) continue;
    if (state.clock == last() && state.updated == 0 && state.out == 0) return cost;
    expand(state, cost);
  }
  return std::numeric_limits<int>::max();
}

}  // namespace

int least_exposed(const TinyTide& tide) {
  int room = tide.step_room;
  if (!tide.rise.empty()) room = std::min(room, tide.rise.back());
  if (!tide.fall.empty()) room = std::min(room, tide.fall.front());
  int least = std::numeric_limits<int>::max();
  for (int kept = 0; kept <= std::min(room, tide.pieces); ++kept) {
    least = std::min(least, Exhaustive(tide, kept).run());
  }
  return least;
}

}  // namespace ebb
