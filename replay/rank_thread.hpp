// RankThread: one rank of a run, from its memory to its numbers, on a host thread of its own.
//
// Order. Whatever can fail on one rank alone (memory, pinning, streams) comes first; then all meet, make their
// communicators, and walk the steps together. An error on one rank breaks the barrier, opens the gate and aborts the
// communicators, so that no other rank waits for ever, and is thrown again when all threads have ended (execute.cpp).
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "models/timeline.hpp"
#include "replay/barrier.hpp"
#include "replay/execute.hpp"
#include "replay/gate.hpp"
#include "replay/groups.hpp"
#include "replay/link_reference.hpp"
#include "replay/processes.hpp"

namespace ebb::replay {

/// What the ranks of this process have in common.
struct RunShared {
  RunShared(const ExecuteOptions& run, int ranks) : options(run), barrier(ranks) {}

  const ExecuteOptions& options;
  NcclIds ids;                     // of the groups that are complete
  Processes* processes = nullptr;  // where there are others
  Barrier barrier;
  StartGate gate;
  CommRegistry comms;

  /// Waits for all ranks of all processes; `last` runs once in each process before they go on.
  template <class Last>
  void meet(Last&& last) {
    barrier.meet([&] {
      if (processes != nullptr) processes->barrier();
      last();
    });
  }
  void meet() {
    meet([] {});
  }
  /// One rank of this process after another.
  template <class Do>
  void in_turn(Do&& act) {
    meet();
    const std::lock_guard lock(turn);
    act();
  }
  std::mutex turn;
  /// Lets go of everybody who may wait for this rank.
  void stop(std::exception_ptr error);
};

/// What one rank brings home.
struct RankRecord {
  RankNumbers numbers;
  std::vector<Timeline> repeats;  // timed steps
  MemoryFigures memory;           // what only a run can know
  std::optional<LinkReference> link;
  std::vector<std::string> remarks;
};

/// Where a rank runs.
struct RankPlace {
  int device = 0;
  int node = -1;            // NUMA node of the device; -1: unknown
  std::size_t index = 0;    // among the ranks whose devices hang on that node, which share its CPUs ...
  std::size_t sharers = 1;  // ... so many
};

/// The body of the thread. Throws what went wrong, after stop(); Stopped when another rank failed.
RankRecord run_rank(const Program& program, const RankPlace& place, RunShared& shared);

/// Device memory of instruments that run_rank() will make.
Bytes instruments_needed(const Program& program, const ExecuteOptions& options);

}  // namespace ebb::replay
