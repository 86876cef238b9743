// Simulator: runs Plans through time, one after another, in storage that it keeps.
//
// How it works. A stream executes its ops in order, so only the first op not ended of each stream matters. That op
// looks at its dependencies one by one; at the first that has not ended, its stream goes to sleep on it and is woken
// when it ends. Dependencies are therefore looked at about once each, and nothing scans the plan. An op with a known
// duration is settled the moment all it waits for is: its end may lie in the simulated future. Copies go to the
// CopyEngines, the only place where time passes event by event. Results depend on ticks and op ids alone, so that any
// order of waking gives the same bits.
//
// Not here: memory (models/timeline.hpp, summarize) and hazards (the planner's verify).
#pragma once

#include <cstdint>
#include <vector>

#include "models/cluster.hpp"
#include "models/plan.hpp"
#include "models/timeline.hpp"
#include "sim/copy_engines.hpp"
#include "sim/op_cost.hpp"
#include "sim/simulate.hpp"

namespace ebb::sim {

class Simulator {
 public:
  /// The predicted timeline of `plan` into `out`, whose storage is reused. A copy starts when its engine takes it,
  /// which may be after all it depends on. Allocates only when the plan is larger than those before it. Preconditions:
  /// every dependency is an earlier op; streams and dependency lists exist; the cluster's figures that the plan uses
  /// are > 0.
  void run(const Plan& plan, const Cluster& cluster, const Sharing& sharing, Timeline& out);

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  static constexpr Ticks kNotEnded{-1};

  /// Where one stream stands.
  struct Cursor {
    std::uint32_t op = kNone;            // first op not ended; kNone: all have
    std::uint32_t deps_seen = 0;         // of it
    Ticks ready{0};                      // latest end of the op before it and of these dependencies
    std::uint32_t next_sleeper = kNone;  // stream that sleeps on the same op
  };

  bool thread_streams(const Plan& plan);
  void wake_all();
  void run_stream(std::uint32_t stream);
  bool wait_for_deps(std::uint32_t stream, const Op& op);
  void settle(std::uint32_t stream, Ticks start, Ticks end);

  const Plan* plan_ = nullptr;  // during run() only
  Timeline* out_ = nullptr;
  std::size_t settled_ = 0;
  OpCost cost_;
  CopyEngines engines_;
  std::vector<Cursor> cursors_;         // by stream
  std::vector<std::uint32_t> next_;     // by op: the next op of its stream
  std::vector<std::uint32_t> sleeper_;  // by op: first stream that sleeps on it
  std::vector<std::uint32_t> awake_;    // streams to run
};

}  // namespace ebb::sim
