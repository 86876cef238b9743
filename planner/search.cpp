// Search. For each policy two candidates are looked for: the one that the rule prefers among those that fit, and the
// one that needs least memory. Both are minima of a total order (recommend.hpp), so best-first branch and bound finds
// them:
//
//   a heap of bounds, first one for each family (the candidates that differ in chunk size and slots only)
//   take the least; stop when it is not better than the best answer so far; leave out what cannot fit
//   a family: put the bounds of its members into the heap
//   a candidate: look closer at one rank (probe); if it may still win, evaluate it
//
// A bound is never above the answer, so what is left out could not have won, and the result is that of evaluating
// everything (SearchOptions::exhaustive).
#include "planner/search.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "models/errors.hpp"
#include "planner/candidates.hpp"
#include "planner/evaluator.hpp"
#include "planner/recommend.hpp"
#include "planner/shortfall.hpp"
#include "planner/verify.hpp"

namespace ebb {

Bytes device_budget_of(const Job& job) {
  return job.budget.device.value_or(job.cluster.gpu.memory.value - job.cluster.gpu.context.value);
}

Bytes host_budget_of(const Job& job) { return job.budget.host.value_or(job.cluster.host.memory.value); }

namespace {

enum class Goal { fastest_that_fits, smallest };

/// Candidates that differ in chunk size and slots only.
using Family = std::vector<Candidate>;

class Search {
 public:
  Search(const Job& job, const SearchOptions& options);
  SearchResult run();

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;
  struct Node {
    Key key;
    const Family* family = nullptr;  // of all these ...
    Candidate candidate;             // ... or, when none, of this one

    /// For a heap with the least key on top; the second member makes the order of equals the same everywhere.
    bool operator<(const Node& other) const { return std::tie(other.key, other.candidate) < std::tie(key, candidate); }
  };

  /// The first two members of the order that `goal` minimises, from a bound.
  Key key_of(const Bound& bound, Goal goal) const {
    const std::int64_t time = thousandths(bound.step.value / resident_step_.value);
    return goal == Goal::smallest ? Key{bound.reserved.value, time} : Key{time, bound.reserved.value};
  }
  Key key_of(const Answer& answer, Goal goal) const { return key_of(Bound{answer.step, answer.device_reserved}, goal); }
  bool hopeless(const Bound& bound, Goal goal) const {
    return goal == Goal::fastest_that_fits && bound.reserved > device_budget_of(evaluator_.job());
  }

  const Answer& evaluate(const Candidate& candidate);
  void show(const Answer& answer);
  bool runs(const Answer& answer);
  void replay_rows(std::vector<Answer>& rows) const;
  bool eligible(const Answer& answer, Goal goal);
  std::optional<Answer> best(Policy policy, Goal goal);
  std::optional<Answer> best_of_all(Policy policy, Goal goal);
  void expand(const Node& node, Goal goal, std::priority_queue<Node>& heap);
  bool may_win(const Node& node, Goal goal, const std::optional<Answer>& best);
  Answer production_row();
  void add_rows(Policy policy, std::vector<Answer>& rows);

  SearchOptions options_;
  Evaluator evaluator_;
  std::map<Policy, std::vector<Family>> families_;
  std::map<Candidate, Answer> answers_;
  std::map<Candidate, bool> runs_;  // whether the allocator gets through
  Seconds resident_step_{1};
  SearchProgress progress_;
};

Search::Search(const Job& job, const SearchOptions& options) : options_(options), evaluator_(job) {
  for (const Candidate& candidate : candidates_of(job, evaluator_.deciding_shards())) {
    std::vector<Family>& families = families_[candidate.policy];
    if (families.empty() || families.back().front().fraction != candidate.fraction) families.emplace_back();
    families.back().push_back(candidate);
    ++progress_.total;
  }
  resident_step_ = evaluate(Candidate{}).step;
}

const Answer& Search::evaluate(const Candidate& candidate) {
  const auto known = answers_.find(candidate);
  if (known != answers_.end()) return known->second;
  Answer answer = evaluator_.answer(candidate);
  answer.deployable =
      answer.objection.empty() && answer.requires_megatron != "ebb" && accepts(options_.megatron, candidate.policy);
  answer.reason = obstacle_of(answer, device_budget_of(evaluator_.job()), host_budget_of(evaluator_.job()));
  if (answer.reason.empty()) answer.reason = "fits the device and the host";
  const Answer& kept = answers_.emplace(candidate, std::move(answer)).first->second;
  show(kept);
  return kept;
}

void Search::show(const Answer& answer) {
  if (!options_.progress) return;
  if (answer.feasible() && (progress_.best == nullptr || answer.step < progress_.best->step)) progress_.best = &answer;
  progress_.done = std::min(progress_.done + 1, progress_.total);
  options_.progress(progress_);
}

/// Whether the allocator gets through within the budget.
bool Search::runs(const Answer& answer) {
  const auto [known, is_new] = runs_.emplace(answer.candidate, false);
  if (is_new) known->second = evaluator_.runs_within_budget(answer);
  return known->second;
}

/// Replays the allocator for the rows, each in a thread of its own: they depend on nothing but their row.
void Search::replay_rows(std::vector<Answer>& rows) const {
  std::vector<std::future<void>> replays;
  for (Answer& row : rows) {
    if (!options_.likely && !row.feasible()) continue;
    replays.push_back(std::async(std::launch::async, [this, &row] { evaluator_.replay_allocator(row); }));
  }
  for (std::future<void>& replay : replays) replay.get();
  for (Answer& row : rows)
    if (!row.fits_device)
      row.reason = obstacle_of(row, device_budget_of(evaluator_.job()), host_budget_of(evaluator_.job()));
}

/// Whether an answer that the order prefers may be taken. The replay comes last, because it is dearest, and only where
/// it can say no: over the job library it needed at most 21 % more than the bound.
bool Search::eligible(const Answer& answer, Goal goal) {
  if (goal == Goal::smallest) return true;
  if (!answer.feasible()) return false;
  const bool roomy = answer.device_reserved.value / 10 * 13 <= device_budget_of(evaluator_.job()).value;
  return roomy || runs(answer);
}

bool prefers(const Answer& a, const Answer& b, Goal goal) {
  return goal == Goal::smallest ? smaller(a, b) : faster(a, b);
}

void Search::expand(const Node& node, Goal goal, std::priority_queue<Node>& heap) {
  if (goal == Goal::fastest_that_fits && !evaluator_.fits_host(node.family->front())) return;
  for (const Candidate& candidate : *node.family) {
    const Bound bound = evaluator_.bound(candidate);
    if (!hopeless(bound, goal)) heap.push({key_of(bound, goal), nullptr, candidate});
  }
}

/// A closer look at a candidate whose bound is promising.
bool Search::may_win(const Node& node, Goal goal, const std::optional<Answer>& best) {
  // No need to look closer where it is evaluated already, or where looking is evaluating.
  if (answers_.contains(node.candidate) || !evaluator_.probe_is_cheaper()) return true;
  const Bound probe = evaluator_.probe(node.candidate);
  return !hopeless(probe, goal) && (!best || key_of(probe, goal) <= key_of(*best, goal));
}

/// nullopt: no candidate of the policy fits (or there is none).
std::optional<Answer> Search::best(Policy policy, Goal goal) {
  if (options_.exhaustive) return best_of_all(policy, goal);
  std::priority_queue<Node> heap;
  for (const Family& family : families_[policy]) {
    const Bound bound = evaluator_.family_bound(family.front());
    if (!hopeless(bound, goal)) heap.push({key_of(bound, goal), &family, family.front()});
  }
  std::optional<Answer> best;
  while (!heap.empty()) {
    const Node node = heap.top();
    heap.pop();
    if (best && node.key > key_of(*best, goal)) break;
    if (node.family != nullptr) {
      expand(node, goal, heap);
    } else if (may_win(node, goal, best)) {
      const Answer& answer = evaluate(node.candidate);
      if ((!best || prefers(answer, *best, goal)) && eligible(answer, goal)) best = answer;
    }
  }
  return best;
}

std::optional<Answer> Search::best_of_all(Policy policy, Goal goal) {
  std::optional<Answer> best;
  for (const Family& family : families_[policy])
    for (const Candidate& candidate : family) {
      const Answer& answer = evaluate(candidate);
      if ((!best || prefers(answer, *best, goal)) && eligible(answer, goal)) best = answer;
    }
  return best;
}

/// The size that production runs use, always shown; no pick where the job asks for something else.
Answer Search::production_row() {
  const Offload& offload = evaluator_.job().offload;
  Answer answer = evaluate({.policy = Policy::chunked, .chunk_numel = kProductionNumel});
  const bool asked = offload.policy.value_or(Policy::chunked) == Policy::chunked &&
                     offload.chunk_numel.value_or(kProductionNumel) == kProductionNumel;
  if (asked) return answer;
  answer.deployable = false;
  if (answer.feasible() && answer.objection.empty())
    answer.reason = "for comparison: the job's offload asks for another";
  return answer;
}

/// The rows of one policy in table order: by what moves, then by chunk size.
void Search::add_rows(Policy policy, std::vector<Answer>& rows) {
  std::vector<Answer> mine;
  const auto add = [&](const std::optional<Answer>& answer) {
    const auto same = [&](const Answer& other) { return other.candidate == answer->candidate; };
    if (answer && std::none_of(mine.begin(), mine.end(), same)) mine.push_back(*answer);
  };
  if (families_.contains(policy)) {
    const std::optional<Answer> fastest = best(policy, Goal::fastest_that_fits);
    add(fastest);
    // Of Ebb's own schedules, and where there is little to choose, one row is enough.
    const bool alternatives = policy == Policy::chunked || policy == Policy::windowed;
    if (!fastest || alternatives) add(best(policy, Goal::smallest));
  }
  if (policy == Policy::chunked) add(production_row());
  std::sort(mine.begin(), mine.end(), [](const Answer& a, const Answer& b) { return a.candidate < b.candidate; });
  rows.insert(rows.end(), mine.begin(), mine.end());
}

SearchResult Search::run() {
  const Job& job = evaluator_.job();
  SearchResult result;
  result.device_budget = device_budget_of(job);
  result.host_budget = host_budget_of(job);
  std::int64_t settled = 0;  // with a policy's rows, so are all its candidates
  for (const Policy policy : kPolicies) {
    add_rows(policy, result.candidates);
    for (const Family& family : families_[policy]) settled += static_cast<std::int64_t>(family.size());
    progress_.done = settled;
  }
  replay_rows(result.candidates);
  result.recommended = recommend(result.candidates, job.offload.policy);
  result.fixed = job.offload.policy.has_value();
  if (result.recommended) {
    evaluator_.replay_resume(result.candidates[*result.recommended]);
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
  evaluator.replay_allocator(answer);
  evaluator.replay_resume(answer);
  answer.deployable =
      answer.objection.empty() && answer.requires_megatron != "ebb" && accepts(Megatron::any, candidate.policy);
  answer.reason = obstacle_of(answer, device_budget_of(job), host_budget_of(job));
  return answer;
}

}  // namespace ebb
