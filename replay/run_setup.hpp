// What precedes the rank threads of a run on GPUs, be it steps (execute.cpp) or a life (life_gpu.cpp): which plans are
// this process's, on which devices, whom they talk to, and the threads themselves.
//
// Not here: what a rank does (rank_thread.hpp, rank_life.hpp), whether there is enough memory (preflight.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "replay/execute.hpp"
#include "replay/groups.hpp"
#include "replay/preflight.hpp"
#include "replay/processes.hpp"
#include "replay/rank_thread.hpp"

namespace ebb::replay {

/// What this process does of a run: plans [first, first + devices.size()) of the host's.
struct OwnPart {
  std::size_t first = 0;
  std::vector<int> devices;            // of each
  std::optional<Processes> processes;  // where there are others
};
/// What a run says of its ranks, by their place among the host's plans.
struct RunRanks {
  std::size_t count = 0;
  std::function<std::int64_t(std::size_t)> rank;
  std::function<std::vector<const Program*>(std::size_t)> programs;
  /// Of all ranks of the host: other processes pin beside this one. `device` is filled in.
  std::function<RankNeeds(std::size_t, bool own)> needs;
};

/// Everything that precedes the threads.
struct RunSetup {
  OwnPart part;
  Machine machine;
  std::vector<std::int64_t> present;  // global ranks of all processes, ascending
  NcclIds ids;
  std::vector<RankPlace> places;  // of this process's ranks
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<std::string> remarks;

  Processes* processes() { return part.processes ? &*part.processes : nullptr; }
};
/// InputError where the machine has less than the ranks need; CudaError, NcclError.
RunSetup set_up(const RunRanks& ranks, const ExecuteOptions& options);

/// run(i) on a thread for each rank; returns when all have ended, throws the first error.
template <class Run>
auto run_threads(std::size_t ranks, RunShared& shared, Run&& run) {
  std::vector<decltype(run(std::size_t{0}))> records(ranks);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < ranks; ++i) {
      threads.emplace_back([&, i] {
        try {
          records[i] = run(i);
        } catch (const Stopped&) {
        } catch (...) {
          shared.stop(std::current_exception());
        }
      });
    }
  }
  shared.barrier.rethrow();
  return records;
}

}  // namespace ebb::replay
