// The ranks of a job whose answers can differ.
//
// Tensor-parallel ranks of a stage own the same shards; ranks that own pieces of the same sizes in the same order pack,
// move and step them alike. Pipeline stages with the same layout differ only in what they hold and compute, and one
// that holds and computes no more than another such stage cannot decide a maximum: it is left out. What remains is
// exact.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/job.hpp"
#include "planner/layout.hpp"
#include "planner/lower.hpp"

namespace ebb {

/// Of one RankSet.
inline bool same_stage(const RankModel& a, const RankModel& b) { return a.stage == b.stage; }

class RankSet {
 public:
  /// Precondition: check(job) passed. InputError when the pipeline layout does not fit. `job` outlives the set.
  explicit RankSet(const Job& job);
  RankSet(const RankSet&) = delete;
  RankSet& operator=(const RankSet&) = delete;

  /// Stage by stage, ranks ascending. Never empty.
  const std::vector<RankModel>& ranks() const { return ranks_; }
  /// The member of ranks() that stands for a global rank: it does the same, or, where its stage was left out, no less.
  std::size_t model_of(std::int64_t rank) const;

 private:
  void keep_stages(const Job& job);
  void add_ranks(const Job& job, const StageLayout& stage);

  using Place = std::pair<std::int64_t, std::int64_t>;  // dense shard, expert shard

  const Job* job_;
  std::vector<std::size_t> stage_of_pipeline_;          // by pipeline rank: into stages_
  std::vector<std::map<Place, std::size_t>> model_of_;  // by stage: into ranks_
  std::vector<StageLayout> stages_;
  std::vector<RankModel> ranks_;
};

}  // namespace ebb
