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
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "models/errors.hpp"
#include "planner/answers.hpp"
#include "planner/candidates.hpp"
#include "planner/front.hpp"
#include "planner/recommend.hpp"
#include "planner/robust.hpp"
#include "planner/shortfall.hpp"
#include "planner/verify.hpp"

namespace ebb {

Bytes device_budget_of(const Job& job) {
  return job.budget.device.value_or(job.cluster.gpu.memory.value - job.cluster.gpu.context.value);
}

Bytes host_budget_of(const Job& job) { return job.budget.host.value_or(job.cluster.host.memory.value); }

namespace {

enum class What { fastest_that_fits, smallest, smallest_that_fits };

struct Goal {
  What what = What::smallest;
  std::int64_t slowest = std::numeric_limits<std::int64_t>::max();  // thousandths of the resident step, at most

  bool by_size() const { return what != What::fastest_that_fits; }
  bool must_fit() const { return what != What::smallest; }
};

class Search {
 public:
  Search(const Job& job, const SearchOptions& options, std::optional<Start> also_as = std::nullopt);
  SearchResult run();
  bool anything_fits();

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;
  struct Node {
    Key key;
    const Family* family = nullptr;  // of all these ...
    Candidate candidate;             // ... or, when none, of this one

    /// For a heap with the least key on top; the second member makes the order of equals the same everywhere.
    bool operator<(const Node& other) const { return std::tie(other.key, other.candidate) < std::tie(key, candidate); }
  };

  std::int64_t time_of(Seconds step) const { return thousandths(step.value / answers_.resident_step().value); }
  /// The first two members of the order that `goal` minimises, from a bound.
  Key key_of(const Bound& bound, const Goal& goal) const {
    const std::int64_t time = time_of(bound.step);
    return goal.by_size() ? Key{bound.reserved.value, time} : Key{time, bound.reserved.value};
  }
  Key key_of(const Answer& answer, const Goal& goal) const {
    return key_of(Bound{answer.step, answer.device_reserved}, goal);
  }
  bool hopeless(const Bound& bound, const Goal& goal) const {
    return (goal.must_fit() && bound.reserved > device_budget_of(evaluator_.job())) ||
           time_of(bound.step) > goal.slowest;
  }

  void replay_rows(std::vector<Answer>& rows) const;
  bool eligible(const Answer& answer, const Goal& goal);
  std::optional<Answer> best(Policy policy, const Goal& goal);
  std::optional<Answer> best_of_all(Policy policy, const Goal& goal);
  void expand(const Node& node, const Goal& goal, std::priority_queue<Node>& heap);
  bool may_win(const Node& node, const Goal& goal, const std::optional<Answer>& best);
  Answer production_row();
  void add_rows(Policy policy, std::vector<Answer>& rows);
  void add_smallest(std::vector<Answer>& rows);

  SearchOptions options_;
  Answers answers_;
  Evaluator& evaluator_;
};

Search::Search(const Job& job, const SearchOptions& options, std::optional<Start> also_as)
    : options_(options), answers_(job, options.megatron, also_as), evaluator_(answers_.evaluator()) {
  answers_.watch(options.progress);
}

void Search::replay_rows(std::vector<Answer>& rows) const {
  std::vector<Answer*> replayed;
  for (Answer& row : rows)
    if (options_.likely || row.feasible()) replayed.push_back(&row);
  answers_.replay(replayed, options_.resume);
}

/// Whether an answer that the order prefers may be taken. The replay comes last, because it is dearest, and only where
/// it can say no: over the job library it needed at most 21 % more than the bound.
bool Search::eligible(const Answer& answer, const Goal& goal) {
  if (!goal.must_fit()) return true;
  if (!answer.feasible() || time_of(answer.step) > goal.slowest) return false;
  const bool roomy = answer.device_reserved.value / 10 * 13 <= device_budget_of(evaluator_.job()).value;
  return roomy || answers_.runs(answer);
}

bool prefers(const Answer& a, const Answer& b, const Goal& goal) {
  return goal.by_size() ? smaller(a, b) : faster(a, b);
}

void Search::expand(const Node& node, const Goal& goal, std::priority_queue<Node>& heap) {
  if (goal.must_fit() && !evaluator_.fits_host(node.family->front())) return;
  for (const Candidate& candidate : *node.family) {
    const Bound bound = evaluator_.bound(candidate);
    if (!hopeless(bound, goal)) heap.push({key_of(bound, goal), nullptr, candidate});
  }
}

/// A closer look at a candidate whose bound is promising.
bool Search::may_win(const Node& node, const Goal& goal, const std::optional<Answer>& best) {
  // No need to look closer where it is evaluated already, or where looking is evaluating.
  if (answers_.known(node.candidate) || !evaluator_.probe_is_cheaper()) return true;
  const Bound probe = evaluator_.probe(node.candidate);
  return !hopeless(probe, goal) && (!best || key_of(probe, goal) <= key_of(*best, goal));
}

/// nullopt: no candidate of the policy fits (or there is none).
std::optional<Answer> Search::best(Policy policy, const Goal& goal) {
  if (options_.exhaustive) return best_of_all(policy, goal);
  std::priority_queue<Node> heap;
  for (const Family& family : answers_.families(policy)) {
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
      const Answer& answer = answers_.of(node.candidate);
      if ((!best || prefers(answer, *best, goal)) && eligible(answer, goal)) best = answer;
    }
  }
  return best;
}

std::optional<Answer> Search::best_of_all(Policy policy, const Goal& goal) {
  std::optional<Answer> best;
  for (const Family& family : answers_.families(policy))
    for (const Candidate& candidate : family) {
      const Answer& answer = answers_.of(candidate);
      if ((!best || prefers(answer, *best, goal)) && eligible(answer, goal)) best = answer;
    }
  return best;
}

/// The size that production runs use, always shown; no pick where the job asks for something else.
Answer Search::production_row() {
  const Offload& offload = evaluator_.job().offload;
  Answer answer = answers_.of({.policy = Policy::chunked, .chunk_numel = kProductionNumel});
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
  if (!answers_.families(policy).empty()) {
    const std::optional<Answer> fastest = best(policy, {What::fastest_that_fits});
    add(fastest);
    // Of Ebb's own schedules, and where there is little to choose, one row is enough.
    const bool alternatives = policy == Policy::chunked || policy == Policy::windowed;
    if (!fastest || alternatives) add(best(policy, {What::smallest}));
  }
  if (policy == Policy::chunked) add(production_row());
  std::sort(mine.begin(), mine.end(), [](const Answer& a, const Answer& b) { return a.candidate < b.candidate; });
  rows.insert(rows.end(), mine.begin(), mine.end());
}

/// What an objective other than the step may pick: of each policy in question, the candidate that needs least
/// and fits; of them all the best. Rows stay in table order.
void Search::add_smallest(std::vector<Answer>& rows) {
  if (options_.objective == Objective::step) return;
  const std::optional<Policy> fixed = evaluator_.job().offload.policy;
  Goal goal{What::smallest_that_fits};
  const std::optional<std::size_t> fastest = fastest_of(rows, fixed);
  if (!fastest) return;
  if (options_.objective == Objective::balanced) goal.slowest = balanced_limit(thousandths(rows[*fastest].slowdown));
  std::optional<Answer> smallest;
  for (const Policy policy : kPolicies) {
    if (!answers_.in_question(policy)) continue;
    const std::optional<Answer> mine = best(policy, goal);
    if (mine && (!smallest || smaller(*mine, *smallest))) smallest = mine;
  }
  const auto same = [&](const Answer& row) { return row.candidate == smallest->candidate; };
  if (!smallest || std::any_of(rows.begin(), rows.end(), same)) return;
  const auto place =
      std::find_if(rows.begin(), rows.end(), [&](const Answer& row) { return smallest->candidate < row.candidate; });
  rows.insert(place, *smallest);
}

SearchResult Search::run() {
  const Job& job = evaluator_.job();
  SearchResult result;
  result.device_budget = device_budget_of(job);
  result.host_budget = host_budget_of(job);
  for (const Policy policy : kPolicies) {
    add_rows(policy, result.candidates);
    answers_.settle(policy);
  }
  add_smallest(result.candidates);
  replay_rows(result.candidates);
  if (options_.front) result.front = front_of(answers_, options_.resume);
  result.recommended = recommend(result.candidates, job.offload.policy, options_.objective);
  result.objective = options_.objective;
  result.fixed = job.offload.policy.has_value();
  if (result.recommended) {
    Answer& pick = result.candidates[*result.recommended];
    if (!options_.resume) evaluator_.replay_resume(pick);
    pick.reason = reason_for(result);
    return result;
  }
  result.shortfall = shortfall_of(result, job.offload.policy);
  if (options_.cures) result.cures = cures_for(job, result, options_);
  return result;
}

bool Search::anything_fits() {
  return std::any_of(kPolicies.begin(), kPolicies.end(), [&](Policy policy) {
    return answers_.in_question(policy) && best(policy, {What::smallest_that_fits}).has_value();
  });
}

}  // namespace

bool anything_fits(const Job& job, Megatron megatron) { return Search(job, {.megatron = megatron}).anything_fits(); }

SearchResult search_robustly(const Job& worst, Start start, const SearchOptions& options) {
  return Search(worst, options, start).run();
}

SearchResult search(const Job& job, const SearchOptions& options) { return Search(job, options).run(); }

Answer evaluate(const Job& job, const Candidate& candidate, std::optional<Start> also_as) {
  Evaluator evaluator(job);
  Answer answer = evaluator.answer(candidate);
  evaluator.replay_allocator(answer);
  if (also_as && *also_as != job.checkpoint.start) {
    Job other = job;
    other.checkpoint.start = *also_as;
    Evaluator(other).replay_allocator(answer);
  }
  evaluator.replay_resume(answer);
  answer.deployable =
      answer.objection.empty() && answer.requires_megatron != "ebb" && accepts(Megatron::any, candidate.policy);
  answer.reason = obstacle_of(answer, device_budget_of(job), host_budget_of(job));
  return answer;
}

}  // namespace ebb
