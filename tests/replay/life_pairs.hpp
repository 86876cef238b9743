// A job's lives on two ranks and on one, under resident and another policy: what tests compare.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "planner/host_plans.hpp"
#include "replay/life_equivalence.hpp"
#include "replay/life_files.hpp"
#include "tests/replay/replay_cases.hpp"

namespace ebb::test {

inline std::vector<Plan> life_plans(Job job, const Candidate& candidate, int gpus) {
  job.parallel.gpus = gpus;
  return host_life(job, candidate).plans;
}

class TwoRankLife {
 public:
  TwoRankLife(const Job& job, const Candidate& policy, int own = 2)
      : resident_(replay::life_of(life_plans(job, {.policy = Policy::resident}, own), "resident.json")),
        policy_(replay::life_of(life_plans(job, policy, own), "policy.json")),
        resident_other_(replay::life_of(life_plans(job, {.policy = Policy::resident}, 3 - own), "resident.json")),
        policy_other_(replay::life_of(life_plans(job, policy, 3 - own), "policy.json")),
        directory_(std::filesystem::temp_directory_path() / ("ebb_life_test_" + std::to_string(::getpid()))) {}
  ~TwoRankLife() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  TwoRankLife(const TwoRankLife&) = delete;
  TwoRankLife& operator=(const TwoRankLife&) = delete;

  /// Of the policy's plans on its own number of ranks.
  template <class Change>
  void change_policy(Change change) {
    std::vector<Plan> plans = *policy_.plans;
    for (Plan& plan : plans) change(plan);
    policy_ = replay::life_of(std::move(plans), "policy.json");
  }
  std::string directory() const { return directory_.string(); }
  replay::LifeExecutor executor() const { return replay::cpu_executor({policy_.ranks, policy_other_.ranks}); }
  replay::LifeEquivalence compare(const replay::LifeShape& shape) const { return compare(shape, executor()); }
  replay::LifeEquivalence compare(const replay::LifeShape& shape, const replay::LifeExecutor& executor,
                                  const replay::TrainingOptions& training = {}) const {
    replay::LifeComparison comparison;
    comparison.training = training;
    comparison.shape = shape;
    comparison.disturbed = replay::standard_life(replay::kShortLife);
    comparison.disturbed.reshard = shape.reshard;
    comparison.directory = directory();
    if (!shape.reshard) return replay::compare_lives({resident_.ranks, {}}, {policy_.ranks, {}}, comparison, executor);
    return replay::compare_lives({resident_.ranks, resident_other_.ranks}, {policy_.ranks, policy_other_.ranks},
                                 comparison, executor);
  }

 private:
  replay::LifeFile resident_, policy_, resident_other_, policy_other_;
  std::filesystem::path directory_;
};

}  // namespace ebb::test
