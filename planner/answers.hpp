// The answers of one job's candidates, each computed once: what the search for rows (search.cpp) and the front
// (front.hpp) both ask for. Candidates stand in families, which one bound can rule out whole. Not here: which answers
// are wanted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "planner/evaluator.hpp"
#include "planner/search.hpp"

namespace ebb {

/// Candidates that differ in chunk size and slots only.
using Family = std::vector<Candidate>;

class Answers {
 public:
  /// `job` outlives the answers. Precondition: check(job) passed. With `also_as`, candidates must get through that
  /// start of the run as well as the job's own.
  Answers(const Job& job, Megatron megatron, std::optional<Start> also_as = std::nullopt);

  /// `progress`, if any, is called after each evaluation.
  void watch(std::function<void(const SearchProgress&)> progress);
  /// Candidates of `policy` that were not evaluated count as left out.
  void settle(Policy policy);

  Evaluator& evaluator() { return evaluator_; }
  const Job& job() const { return evaluator_.job(); }
  Seconds resident_step() const { return resident_step_; }
  /// Empty where the job rules the policy out.
  const std::vector<Family>& families(Policy policy) const;

  /// Under the Megatron asked for, which does not object.
  bool deployable(Policy policy);
  /// in_question() of its answers (recommend.hpp).
  bool in_question(Policy policy);
  /// With `deployable` and `reason`. The reference stays valid.
  const Answer& of(const Candidate& candidate);
  bool known(const Candidate& candidate) const { return answers_.contains(candidate); }
  /// Whether the allocator gets through within the budget.
  bool runs(const Answer& answer);
  /// Replays the allocator for these, one on each core: what they need is no longer a bound alone.
  void replay(const std::vector<Answer*>& answers, bool resume) const;

 private:
  void show(const Answer& answer);

  Megatron megatron_;
  Evaluator evaluator_;
  std::unique_ptr<Job> other_job_;  // started otherwise
  std::unique_ptr<Evaluator> other_;
  std::map<Policy, std::vector<Family>> families_;
  std::map<Candidate, Answer> answers_;
  std::map<Candidate, bool> runs_;
  std::map<Policy, bool> deployable_;
  Seconds resident_step_{1};
  std::function<void(const SearchProgress&)> show_;
  SearchProgress progress_;
  std::int64_t settled_ = 0;
};

}  // namespace ebb
