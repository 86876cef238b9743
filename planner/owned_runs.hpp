// OwnedRun: consecutive owned elements whose parameters are of one kind: quantised or not, of experts or not. What
// parts of a plan that treat quantised weights apart walk over. Internal to lowering.
#pragma once

#include <vector>

#include "planner/lower.hpp"

namespace ebb {

struct OwnedRun {
  ElementRange range;
  std::uint32_t tensors = 0;  // shards that it has elements of
  bool quantized = false;     // by ops of its own (quantizes_explicitly)
  bool expert = false;
};

/// The runs of `range`, ascending. Where the policy's precision quantises nothing explicitly, one run.
std::vector<OwnedRun> owned_runs(const RankModel& rank, const Precision& precision, ElementRange range);

/// pipelined: the elements of each chunk, of exactly `numel` but where a run ends: a chunk is of one kind.
std::vector<OwnedRun> slot_chunks(const RankModel& rank, const Precision& precision, Numel numel);

}  // namespace ebb
