#include "planner/front.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

#include "planner/recommend.hpp"

namespace ebb {

bool can_be_chosen(const Answer& answer, std::optional<Policy> fixed) {
  return in_question(answer, fixed) && answer.fits_host;
}

std::vector<Answer> front_of(std::vector<Answer> answers, std::optional<Policy> fixed) {
  std::sort(answers.begin(), answers.end(), smaller);
  std::vector<Answer> front;
  std::int64_t fastest = std::numeric_limits<std::int64_t>::max();         // of all so far, which need no more
  std::int64_t fastest_choice = std::numeric_limits<std::int64_t>::max();  // of those that can be chosen
  for (Answer& answer : answers) {
    const std::int64_t time = thousandths(answer.slowdown);
    const bool choice = can_be_chosen(answer, fixed);
    const bool beaten = time >= (choice ? fastest_choice : fastest);
    fastest = std::min(fastest, time);
    if (choice) fastest_choice = std::min(fastest_choice, time);
    if (!beaten) front.push_back(std::move(answer));
  }
  return front;
}

namespace {

/// Memory and time, as they are compared.
struct Point {
  std::int64_t time = 0;
  Bytes reserved{0};

  auto operator<=>(const Point&) const = default;
};

class FrontSearch {
 public:
  FrontSearch(Answers& answers, bool resume)
      : answers_(answers), resume_(resume), fixed_(answers.job().offload.policy) {}
  std::vector<Answer> run();

 private:
  struct Node {
    Point point;
    const Family* family = nullptr;  // of all these ...
    Candidate candidate;             // ... or, when none, of this one

    /// For a heap with the fastest on top; the candidate makes the order of equals the same everywhere.
    bool operator<(const Node& other) const {
      return std::tie(other.point, other.candidate) < std::tie(point, candidate);
    }
  };

  Point point_of(const Bound& bound) const {
    return {thousandths(bound.step.value / answers_.resident_step().value), bound.reserved};
  }
  Point point_of(const Answer& answer) const { return point_of(Bound{answer.step, answer.device_reserved}); }
  bool beaten(const Point& point, bool choice) const;
  bool could_be_chosen(const Candidate& candidate);
  void push(const Node& node);
  void expand(const Family& family);
  void take(const Candidate& candidate);

  Answers& answers_;
  bool resume_;
  std::optional<Policy> fixed_;
  std::priority_queue<Node> heap_;
  std::vector<Answer> known_;  // nothing known beat these when they were found
};

/// Whether a known answer beats this bound, and so whatever has it. Equal in both is not enough: the rule's preference
/// among equals looks at more.
bool FrontSearch::beaten(const Point& point, bool choice) const {
  return std::any_of(known_.begin(), known_.end(), [&](const Answer& answer) {
    const Point other = point_of(answer);
    return other != point && other.time <= point.time && other.reserved <= point.reserved &&
           (!choice || can_be_chosen(answer, fixed_));
  });
}

/// can_be_chosen() of its answer, which need not be known for that.
bool FrontSearch::could_be_chosen(const Candidate& candidate) {
  return answers_.in_question(candidate.policy) && answers_.evaluator().fits_host(candidate);
}

void FrontSearch::push(const Node& node) {
  if (!beaten(node.point, could_be_chosen(node.candidate))) heap_.push(node);
}

void FrontSearch::expand(const Family& family) {
  for (const Candidate& candidate : family) push({point_of(answers_.evaluator().bound(candidate)), nullptr, candidate});
}

void FrontSearch::take(const Candidate& candidate) {
  Evaluator& evaluator = answers_.evaluator();
  const bool choice = could_be_chosen(candidate);
  if (!answers_.known(candidate) && evaluator.probe_is_cheaper() &&
      beaten(point_of(evaluator.probe(candidate)), choice))
    return;
  const Answer& answer = answers_.of(candidate);
  if (!beaten(point_of(answer), choice)) known_.push_back(answer);
}

std::vector<Answer> FrontSearch::run() {
  for (const Policy policy : kPolicies)
    for (const Family& family : answers_.families(policy))
      push({point_of(answers_.evaluator().family_bound(family.front())), &family, family.front()});
  while (!heap_.empty()) {
    const Node node = heap_.top();
    heap_.pop();
    if (beaten(node.point, could_be_chosen(node.candidate))) continue;
    if (node.family != nullptr)
      expand(*node.family);
    else
      take(node.candidate);
  }
  std::vector<Answer> front = front_of(std::move(known_), fixed_);
  std::vector<Answer*> replayed;
  for (Answer& answer : front) replayed.push_back(&answer);
  answers_.replay(replayed, resume_);
  return front_of(std::move(front), fixed_);
}

}  // namespace

std::vector<Answer> front_of(Answers& answers, bool resume) { return FrontSearch(answers, resume).run(); }

}  // namespace ebb
