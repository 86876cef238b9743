// RankRun: where one rank stands in its plan: its host thread and its streams. See simulator.hpp for how they move.
#pragma once

#include <cstdint>
#include <vector>

#include "models/plan.hpp"
#include "models/timeline.hpp"
#include "sim/op_cost.hpp"

namespace ebb::sim {

class RankRun {
 public:
  /// An op that all it waits for has settled.
  struct Ready {
    std::uint32_t op = 0;
    Ticks at{0};         // not before
    Ticks least_end{0};  // the last of its calls has returned
  };

  /// Forgets what it had but its storage. `plan`, `cost` and `out` outlive the run.
  void start(const Plan& plan, const OpCost& cost, Timeline& out);

  /// Runs the host thread and the streams as far as they go. False: nothing moves until something else settles;
  /// otherwise `ready` is the next op that the caller must run, and settle().
  bool next(Ready& ready);

  /// Op `op`, which next() returned, ran from `start` to `end`.
  void settle(std::uint32_t op, Ticks start, Ticks end);

  bool done() const { return settled_ == count_; }
  const Plan& plan() const { return *plan_; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  /// Where one stream stands; the host thread is the last of them.
  struct Cursor {
    std::uint32_t op = kNone;            // first issued op not ended; kNone: none
    std::uint32_t tail = kNone;          // last issued op
    std::uint32_t deps_seen = 0;         // of `op`
    std::uint32_t next_sleeper = kNone;  // stream that sleeps on the same op
    Ticks ready{0};                      // latest end of the op before `op` and of these dependencies
    bool running = false;                // next() has returned `op`
    bool host = false;                   // a stream of the host thread
  };

  // Until an op ends, its entries in the timeline say how it was issued: `start` when its first call has returned,
  // `end` (negative) when its last has.
  static Ticks as_issued(Ticks last_call) { return {-1 - last_call.value}; }
  static Ticks last_call_of(Ticks issued) { return {-1 - issued.value}; }
  static bool ended(Ticks end) { return end.value >= 0; }

  bool is_host(const Op& op) const { return cursors_[op.stream.index].host; }
  void run_host();
  void issue(std::uint32_t index, const Op& op, std::uint32_t events);
  bool run_stream(std::uint32_t stream, Ready& ready);
  std::uint32_t events_of(std::uint32_t index, const Op& op) const;
  bool wait_for_deps(std::uint32_t stream, const Op& op);
  void record(std::uint32_t op, Ticks start, Ticks end);

  const Plan* plan_ = nullptr;
  const OpCost* cost_ = nullptr;
  // Of plan and timeline, at hand.
  const Op* ops_ = nullptr;
  const OpId* deps_ = nullptr;
  Ticks* start_ = nullptr;
  Ticks* end_ = nullptr;
  std::uint32_t count_ = 0;  // of ops
  std::size_t settled_ = 0;
  std::uint32_t host_op_ = 0;           // the first that the host thread has not passed
  Ticks host_now_{0};                   // its clock
  std::vector<Cursor> cursors_;         // by stream, then the host thread
  std::vector<std::uint32_t> next_;     // by op: the next issued op of its stream
  std::vector<std::uint32_t> sleeper_;  // by op: first stream that sleeps on it
  std::vector<std::uint32_t> awake_;    // streams to run
};

}  // namespace ebb::sim
