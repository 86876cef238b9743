// Search. For each policy two candidates are looked for: the one that the rule prefers among those that fit, and the
// one that needs least memory. Both are minima of a total order (recommend.hpp), so branch and bound finds them:
//
//   candidates in the order of their bounds
//   stop at the first whose bound is not better than the best answer so far
//   leave out what cannot fit; look closer at one rank (probe); then evaluate all that can decide
//
// A bound is never above the answer, so what is left out could not have won, and the result is that of evaluating
// everything (SearchOptions::exhaustive).
#include "planner/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "planner/candidates.hpp"
#include "planner/evaluator.hpp"
#include "planner/recommend.hpp"
#include "planner/shortfall.hpp"

namespace ebb {

Bytes device_budget_of(const Job& job) {
  return job.budget.device.value_or(job.cluster.gpu.memory.value - job.cluster.gpu.context.value);
}

Bytes host_budget_of(const Job& job) { return job.budget.host.value_or(job.cluster.host.memory.value); }

namespace {

enum class Goal { fastest_that_fits, smallest };

class Search {
 public:
  Search(const Job& job, const SearchOptions& options) : options_(options), evaluator_(job) {
    for (const Candidate& candidate : candidates_of(job, evaluator_.deciding_shards()))
      of_policy_[candidate.policy].push_back({candidate, evaluator_.bound(candidate)});
    resident_step_ = evaluate(Candidate{}).step;
  }

  SearchResult run();

 private:
  struct Bounded {
    Candidate candidate;
    Bound bound;
  };
  using Key = std::pair<std::int64_t, std::int64_t>;

  /// The first two members of the order that `goal` minimises, from a bound.
  Key key_of(const Bound& bound, Goal goal) const {
    const std::int64_t time = thousandths(bound.step.value / resident_step_.value);
    return goal == Goal::smallest ? Key{bound.reserved.value, time} : Key{time, bound.reserved.value};
  }
  Key key_of(const Answer& answer, Goal goal) const { return key_of(Bound{answer.step, answer.device_reserved}, goal); }

  const Answer& evaluate(const Candidate& candidate);
  std::optional<Answer> best(Policy policy, Goal goal);
  bool hopeless(const Bound& bound, Goal goal) const {
    return goal == Goal::fastest_that_fits && bound.reserved > device_budget_of(evaluator_.job());
  }
  void add_rows(Policy policy, std::vector<Answer>& rows);

  SearchOptions options_;
  Evaluator evaluator_;
  std::map<Policy, std::vector<Bounded>> of_policy_;
  std::map<Candidate, Answer> answers_;
  Seconds resident_step_{1};
};

const Answer& Search::evaluate(const Candidate& candidate) {
  const auto known = answers_.find(candidate);
  if (known != answers_.end()) return known->second;
  Answer answer = evaluator_.answer(candidate);
  answer.deployable = answer.objection.empty() && accepts(options_.megatron, candidate.policy);
  answer.reason = obstacle_of(answer, device_budget_of(evaluator_.job()), host_budget_of(evaluator_.job()));
  if (answer.reason.empty()) answer.reason = "fits the device and the host";
  return answers_.emplace(candidate, std::move(answer)).first->second;
}

/// nullopt: no candidate of the policy fits (or there is none).
std::optional<Answer> Search::best(Policy policy, Goal goal) {
  std::vector<Bounded>& list = of_policy_[policy];
  std::stable_sort(list.begin(), list.end(),
                   [&](const Bounded& a, const Bounded& b) { return key_of(a.bound, goal) < key_of(b.bound, goal); });
  const auto better = goal == Goal::smallest ? smaller : faster;
  std::optional<Answer> best;
  for (const auto& [candidate, bound] : list) {
    if (!options_.exhaustive) {
      if (best && key_of(bound, goal) > key_of(*best, goal)) break;
      if (hopeless(bound, goal)) continue;
      if (goal == Goal::fastest_that_fits && !evaluator_.fits_host(candidate)) continue;
      if (!answers_.contains(candidate)) {
        const Bound closer = evaluator_.probe(candidate);
        if (hopeless(closer, goal) || (best && key_of(closer, goal) > key_of(*best, goal))) continue;
      }
    }
    const Answer& answer = evaluate(candidate);
    if (goal == Goal::fastest_that_fits && !answer.feasible()) continue;
    if (!best || better(answer, *best)) best = answer;
  }
  return best;
}

/// The rows of one policy in table order: by what moves, then by chunk size.
void Search::add_rows(Policy policy, std::vector<Answer>& rows) {
  if (!of_policy_.contains(policy)) return;
  std::vector<Answer> mine;
  const auto add = [&](const std::optional<Answer>& answer) {
    const auto same = [&](const Answer& other) { return other.candidate == answer->candidate; };
    if (answer && std::none_of(mine.begin(), mine.end(), same)) mine.push_back(*answer);
  };
  const std::optional<Answer> fastest = best(policy, Goal::fastest_that_fits);
  add(fastest);
  // Of Ebb's own schedules, and where there is little to choose, one row is enough.
  const bool alternatives = policy == Policy::chunked || policy == Policy::windowed;
  if (!fastest || alternatives) add(best(policy, Goal::smallest));
  if (policy == Policy::chunked && !evaluator_.job().offload.chunk_numel)
    add(evaluate({.policy = policy, .chunk_numel = kProductionNumel}));
  std::sort(mine.begin(), mine.end(), [](const Answer& a, const Answer& b) { return a.candidate < b.candidate; });
  rows.insert(rows.end(), mine.begin(), mine.end());
}

SearchResult Search::run() {
  const Job& job = evaluator_.job();
  SearchResult result;
  result.device_budget = device_budget_of(job);
  result.host_budget = host_budget_of(job);
  for (const Policy policy : kPolicies) add_rows(policy, result.candidates);
  result.recommended = recommend(result.candidates, job.offload.policy);
  if (result.recommended) {
    result.candidates[*result.recommended].reason = reason_for(result);
    return result;
  }
  result.shortfall = shortfall_of(result, job.offload.policy);
  if (options_.cures) result.cures = cures_for(job, result, options_);
  return result;
}

}  // namespace

SearchResult search(const Job& job, const SearchOptions& options) { return Search(job, options).run(); }

Answer evaluate(const Job& job, const Candidate& candidate) {
  Evaluator evaluator(job);
  Answer answer = evaluator.answer(candidate);
  answer.deployable = answer.objection.empty() && accepts(Megatron::any, candidate.policy);
  answer.reason = obstacle_of(answer, device_budget_of(job), host_budget_of(job));
  return answer;
}

}  // namespace ebb
