// FlowEngine: the event core. Lanes take tasks first in, first out; what they move at once shares the Fabric.
//
// A lane that is free takes its first waiting task when that is ready; after the task's latency its bytes begin to
// flow, and then they have flowed: two events a task. Rates change only when the set of flows of a component changes; a
// flow whose rate stays is not touched, so that a copy that never shares ends at exactly start + latency + ceil(bytes /
// rate). Waiting tasks are taken by (ready tick, rank, op). At one tick, ends come first, then what depends on them
// gets ready, then lanes take tasks: call enqueue for everything that became ready at a tick before the next advance().
//
// No timer queue is needed beside this. All other ops have a known duration, so that their ends are known as soon as
// their starts are; and a task not enqueued yet waits for a task that is, so that it cannot be ready before the next
// event here. The lanes themselves are the event queue: there are a few for each rank, and a scan of their next events
// is faster than any heap of that size.
//
// Exactness: ticks are integers; bytes left are doubles. A flow is charged rate * ticks at each change of its rate and
// its end is rounded up to a tick, so that an end is late by under one tick a change, never early by more than the
// rounding of a double (2^-53 of the bytes).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "models/units.hpp"
#include "sim/fabric.hpp"
#include "sim/rate_memory.hpp"

namespace ebb::sim {

class FlowEngine {
 public:
  /// Something that may start at `ready`: `latency`, then `bytes`. It ends no earlier than `least_end`.
  struct Task {
    Ticks ready;
    Ticks latency;
    Ticks least_end{0};
    double bytes = 0;
    FlowId flow = kNoFlow;
    std::uint32_t rank = 0;  // for the caller
    std::uint32_t op = 0;
  };
  struct Ended {
    std::uint32_t lane = 0;
    std::uint32_t rank = 0;
    std::uint32_t op = 0;
    Ticks start;  // when its lane took it
    Ticks end;
  };

  /// Forgets everything but its storage. `fabric` outlives the next run.
  void reset(Fabric& fabric);

  /// Precondition: task.ready is not before the tick that advance() reached.
  void enqueue(std::size_t lane, const Task& task) {
    Lane& to = lanes_[lane];
    if (to.waits) return enqueue_behind(lane, task);
    to.waits = true;
    to.first() = task;
    if (to.state == State::waiting) plan_next(lane);
  }

  /// Runs to the next tick at which tasks end; which, in lane order. False: nothing waits or runs.
  bool advance(std::vector<Ended>& ended);

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  enum class State : std::uint8_t { waiting, flowing, lingering };

  struct Lane {
    State state = State::waiting;
    bool waits = false;
    std::uint32_t component = 0;
    std::uint32_t index = 0;    // in its component
    std::uint32_t flowing = 0;  // where it stands in the component's list of flowing lanes
    Ticks free{0};              // since when it has no task
    Ticks start{0};             // of the task whose bytes flow
    Task tasks[2];              // [current]: whose bytes flow; the other: the first of those that wait
    unsigned current = 0;
    // Other waiting tasks. Nearly always there is none.
    std::vector<Task> others;  // a heap, the first of them in front; empty unless `waits`

    Task& now() { return tasks[current]; }
    Task& first() { return tasks[current ^ 1U]; }
    const Task& first() const { return tasks[current ^ 1U]; }
  };
  /// What flows on a lane, together for the loop over all of them.
  struct Flowing {
    std::uint32_t lane = 0;
    std::uint32_t index = 0;  // of the lane in its component
    FlowId kernel = kNoFlow;  // the flow, where it is a kernel's: its rate follows from the others
    std::int64_t since = 0;   // tick; `left` is as of then
    double left = 0;          // bytes
    double rate = 0;          // bytes per tick
  };
  struct Soonest {
    std::size_t lane = 0;
    std::int64_t event = kNever;
    bool tied = false;  // another lane has an event of the same tick and kind
  };
  struct Component {
    RateMemory rates;
    std::vector<Flowing> flowing;
    bool changed = false;  // at this tick
  };

  static std::int64_t begin_at(Ticks tick) { return tick.value << 1 | 1; }
  static std::int64_t end_at(std::int64_t tick) { return tick << 1; }
  void enqueue_behind(std::size_t lane, const Task& task);
  /// When the first waiting task's bytes will flow, unless another comes before it.
  void plan_next(std::size_t lane) {
    const Lane& by = lanes_[lane];
    next_[lane] = by.waits ? begin_at(std::max(by.free, by.first().ready) + by.first().latency) : kNever;
  }
  void begin_flow(std::size_t lane);
  void end_flow(std::size_t lane, std::vector<Ended>& ended);
  void retire(std::size_t lane, std::vector<Ended>& ended);
  Soonest soonest() const;
  void happen(std::size_t lane, std::vector<Ended>& ended);
  void share(Component& component);
  void touch(Component& component, std::uint32_t number);

  const Fabric* fabric_ = nullptr;  // during a run
  Ticks now_{0};
  std::vector<std::int64_t> next_;  // by lane: its next event, as a tick times two, plus one where bytes begin to flow
  std::vector<Lane> lanes_;
  std::vector<Component> components_;
  std::vector<std::uint32_t> changed_;  // components whose flows have changed at this tick
};

}  // namespace ebb::sim
