// CopyEngines: the event core. A GPU has one copy engine a direction; each is a FIFO server, and what both move at once
// shares the host link.
//
// A copy passes an engine in three events: it is taken (its latency begins), its bytes begin to flow, they have flowed.
// Rates change only when the set of flowing copies changes; a flow whose rate stays is not touched, so that a copy that
// never shares ends at exactly start + latency + ceil(bytes / rate). An engine takes waiting copies by (ready tick, op
// id). At one tick, ends come first, then what depends on them gets ready, then engines take copies: call enqueue for
// everything that became ready at a tick before the next advance().
//
// No timer queue is needed beside this. All other ops have a known duration, so that their ends are known as soon as
// their starts are; and a copy not enqueued yet waits for a copy that is, so that it cannot be ready before the next
// event here.
//
// Exactness: ticks are integers; bytes left are doubles. A flow is charged rate * ticks at each change of its rate and
// its end is rounded up to a tick, so that an end is late by under one tick a change, never early by more than the
// rounding of a double (2^-53 of the bytes).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "models/units.hpp"
#include "sim/copy_rates.hpp"

namespace ebb::sim {

class CopyEngines {
 public:
  /// A copy that may start at `ready`: `latency`, then `bytes`.
  struct Copy {
    Ticks ready;
    Ticks latency;
    double bytes = 0;
    std::uint32_t op = 0;
  };
  struct Ended {
    std::uint32_t op = 0;
    Ticks start;  // when its engine took it
    Ticks end;
  };

  /// Forgets everything but its storage.
  void reset(const CopyRates& rates);

  /// Precondition: copy.ready is not before the tick that advance() reached.
  void enqueue(Direction direction, const Copy& copy);

  /// Runs to the next tick at which copies end, at most one a direction; how many. 0: nothing waits or runs.
  unsigned advance(std::array<Ended, kDirections>& ended);

 private:
  static constexpr Ticks kNever{std::numeric_limits<std::int64_t>::max()};
  enum class State : std::uint8_t { idle, starting, flowing };

  struct Engine {
    State state = State::idle;
    Ticks next = kNever;  // idle: when it takes a copy; starting: when bytes flow; flowing: when they have flowed
    Ticks start{0};       // of the copy it has taken
    Ticks since{0};       // `left` as of this tick
    double left = 0;      // bytes
    double rate = 0;      // bytes per tick
    std::uint32_t op = 0;
    // Waiting copies. Nearly always there is one at most, so the first by (ready, op) has a place of its own.
    bool waits = false;
    Copy first;
    std::vector<Copy> others;  // a heap, the first of them in front; empty unless `waits`
  };

  void take(Engine& engine);
  void retire(Engine& engine, Ended& ended);
  void share(unsigned flowing);

  CopyRates rates_;
  std::array<Engine, kDirections> engines_;
  unsigned flowing_ = 0;  // bit d: direction d
  Ticks now_{0};
};

}  // namespace ebb::sim
