// The ranks of a job whose answers can differ.
//
// Tensor-parallel ranks of a stage own the same shards; ranks that own pieces of the same sizes in the same order pack,
// move and step them alike. Pipeline stages with the same layout differ only in what they hold and compute, and one
// that holds and computes no more than another such stage cannot decide a maximum: it is left out. What remains is
// exact.
#pragma once

#include <cstdint>
#include <vector>

#include "models/job.hpp"
#include "planner/layout.hpp"
#include "planner/lower.hpp"

namespace ebb {

class RankSet {
 public:
  /// Precondition: check(job) passed. InputError when the pipeline layout does not fit. `job` outlives the set.
  explicit RankSet(const Job& job);
  RankSet(const RankSet&) = delete;
  RankSet& operator=(const RankSet&) = delete;

  /// Stage by stage, ranks ascending. Never empty.
  const std::vector<RankModel>& ranks() const { return ranks_; }

 private:
  void keep_stages(const Job& job);
  void add_ranks(const Job& job, const StageLayout& stage);

  std::vector<StageLayout> stages_;
  std::vector<RankModel> ranks_;
};

}  // namespace ebb
