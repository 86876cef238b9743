// LifeShared: what the ranks of one process have in common in a life, and what their steps leave together.
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

}  // namespace ebb::replay
