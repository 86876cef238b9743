// RankLife: one rank of a life (life.hpp) on its GPU, on a host thread of its own: one part after another over one set
// of memory, streams, events and communicators.
//
// As run_rank(): whatever can fail on one rank alone comes first; then all meet. They meet again before every part, and
// in a save when all files are on the disk, before the first commits. A checkpoint is opened and looked at once a
// process, by every rank against its own parameters, before any byte of state changes. An error on one rank stops all.
// Not here: a part's ops (issuer.hpp), which process has which ranks (run_setup.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/checkpoint/checkpoint.hpp"
#include "replay/life.hpp"
#include "replay/rank_thread.hpp"

namespace ebb::replay {

/// What the ranks of this process have in common.
struct LifeShared : RunShared {
  LifeShared(const ExecuteOptions& run, const LifeScript& what, std::span<const LifeRank> here)
      : RunShared(run, static_cast<int>(here.size())), script(what), ranks(here), steps_(here.size()) {}

  const LifeScript& script;
  std::span<const LifeRank> ranks;  // of this process
  std::int64_t job_ranks = 1;       // of all processes
  std::optional<checkpoint::Reader> reader;
  double looked_seconds = 0;  // until it was opened, with every byte checked
  std::string committed;      // the last checkpoint; where the first process is
  std::string saving;         // what all ranks write beside it, until it is one

  /// What the step left on all ranks of the job together.
  struct StepEnd {
    std::uint64_t digest = 0;  // sum
    bool skipped = false;
  };
  /// Waits for all. NcclError where ranks do not agree on `skipped`.
  StepEnd end_step(std::size_t rank, StepEnd own);

 private:
  void sum_up();
  std::vector<StepEnd> steps_;  // by rank of this process
  StepEnd all_;
};

struct RankLifeRecord {
  LifeNumbers numbers;
  std::vector<std::string> remarks;
};

/// The body of the thread. Throws what went wrong, after stop(); Stopped when another rank failed. `index`: of the rank
/// in this process.
RankLifeRecord run_rank_life(const LifeRank& rank, std::size_t index, const RankPlace& place, LifeShared& shared);

/// The rank's programs: init first, then by LifePart. InputError where there is none of init.
std::vector<const Program*> programs_of(const LifeRank& rank);

/// Device memory of instruments that run_rank_life() will make.
Bytes instruments_needed(const LifeRank& rank, const ExecuteOptions& options);

}  // namespace ebb::replay
