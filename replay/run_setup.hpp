// What precedes the rank threads of a run on GPUs, be it steps (execute.cpp) or a life (life_gpu.cpp): which plans are
// this process's, on which devices, whom they talk to, and the threads themselves.
//
// Not here: what a rank does (rank_thread.hpp, rank_life.hpp), whether there is enough memory (preflight.hpp).
#pragma once

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
/// Alone: all of `plans`, on devices 0, 1, ... Of several processes: the plan and the device of its place on the host,
/// or the only device where the launcher shows each process one.
OwnPart own_part(std::size_t plans, const ExecuteOptions& options);

/// Global ranks of all processes, ascending. `own`: of this one.
std::vector<std::int64_t> ranks_present(OwnPart& part, std::vector<std::int64_t> own);

/// Of the groups of `programs` (this process's, of all its ranks `own`) whose ranks are all there.
NcclIds make_ids(OwnPart& part, std::span<const Program* const> programs, std::span<const std::int64_t> own,
                 std::span<const std::int64_t> present, bool alone, std::vector<std::string>& remarks);

/// Where each rank runs, and with whom it shares CPUs. Of other processes only the number on this host is known.
std::vector<RankPlace> places_of(const OwnPart& part);

/// Memory that was taken before the run is in the driver's figures too.
void note_other_users(const OwnPart& part, const Machine& machine, std::vector<std::string>& remarks);

std::vector<std::pair<std::string, std::string>> provenance(const Machine& machine, std::span<const int> devices,
                                                            bool nccl);

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
