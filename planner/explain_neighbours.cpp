// Neighbours of a candidate: the next smaller and larger value of each of its parameters that changes anything, each
// evaluated as the search does.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/quantity_text.hpp"
#include "planner/candidate_report.hpp"
#include "planner/candidates.hpp"
#include "planner/explain_parts.hpp"
#include "planner/recommend.hpp"

namespace ebb {

namespace {

/// A parameter along which candidates can be ordered.
struct Axis {
  const char* smaller;
  const char* larger;
  double (*value)(const Candidate& candidate);
};

/// Windowed with 0 MiB has no limit: all that moves is one chunk, the largest there is (chunking.cpp).
double chunk_of(const Candidate& c) {
  if (c.policy != Policy::windowed) return static_cast<double>(c.chunk_numel.value);
  return c.chunk_size_mb == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(c.chunk_size_mb);
}

constexpr Axis kChunk = {"next smaller chunk", "next larger chunk", chunk_of};
constexpr Axis kFraction = {"a smaller fraction", "a larger fraction", [](const Candidate& c) { return c.fraction; }};
constexpr Axis kSlots = {"one slot less", "one slot more", [](const Candidate& c) { return double{1} * c.slots; }};

std::vector<Axis> axes_of(Policy policy) {
  switch (policy) {
    case Policy::chunked:
      return {kChunk};
    case Policy::windowed:
      return {kChunk, kFraction};
    case Policy::cpu_adam:
      return {kFraction};
    case Policy::pipelined:
      return {kChunk, kSlots};
    case Policy::tidal:
      return {kChunk};
    case Policy::resident:
    case Policy::full_reload:
      return {};
  }
  return {};
}

bool same_but_for(const Axis& axis, const Candidate& a, const Candidate& b) {
  const auto rest = [&](Candidate c) {
    if (axis.value == kChunk.value) c.chunk_numel = {0}, c.chunk_size_mb = 0;
    if (axis.value == kFraction.value) c.fraction = 1;
    if (axis.value == kSlots.value) c.slots = 0;
    return c;
  };
  return rest(a) == rest(b);
}

constexpr double kNothing = 1e-6;  // seconds

/// Nothing that matters tells them apart: another size with the same packing, or as good as.
bool alike(const Answer& a, const Answer& b) {
  return std::abs(a.step.value - b.step.value) < kNothing && a.device_reserved == b.device_reserved;
}

std::string difference(const Answer& other, const Answer& pick) {
  const double step = other.step.value - pick.step.value;
  const std::int64_t bytes = other.device_reserved.value - pick.device_reserved.value;
  std::string text = std::abs(step) < kNothing ? "the same step"
                                               : fmt::format("a step {} {}", format_seconds({step < 0 ? -step : step}),
                                                             step < 0 ? "shorter" : "longer");
  text += bytes == 0
              ? ", the same memory"
              : fmt::format(", {} {}", format_bytes(Bytes{bytes < 0 ? -bytes : bytes}), bytes < 0 ? "less" : "more");
  return text;
}

/// As the search compares them: by bounds, and by whether the allocator gets through (`other_fits`).
std::string verdict_of(const Evaluator& evaluator, const Answer& other, bool other_fits, const Answer& pick) {
  const std::string text = difference(other, pick);
  const std::string obstacle = obstacle_of(other, device_budget_of(evaluator.job()), host_budget_of(evaluator.job()));
  if (!other.feasible()) return fmt::format("{}: {}", text, obstacle);
  if (!other_fits) return fmt::format("{}: the allocator does not get through within the budget", text);
  if (!pick.feasible()) return fmt::format("{}: it fits", text);
  if (faster(other, pick)) return fmt::format("{}: the rule prefers it", text);
  if (thousandths(other.slowdown) > thousandths(pick.slowdown)) return fmt::format("{}: slower", text);
  return fmt::format("{}: as fast to a thousandth{}", text,
                     other.device_reserved > pick.device_reserved ? ", and loses by its memory" : "");
}

/// Whether `a` stands between `from` and `b` on the axis.
bool nearer(const Axis& axis, const Candidate& a, const Candidate& b, bool smaller) {
  return smaller ? axis.value(a) > axis.value(b) : axis.value(a) < axis.value(b);
}

class Neighbours {
 public:
  Neighbours(Evaluator& evaluator, const Candidate& pick) : evaluator_(evaluator), pick_(evaluator.answer(pick)) {
    Job open = evaluator.job();  // what its offload block fixes has neighbours as well
    open.offload = {};
    all_ = candidates_of(open, evaluator.deciding_shards());
  }

  void add(const Axis& axis, bool smaller, std::vector<reports::Neighbour>& list) {
    std::vector<Candidate> side;
    for (const Candidate& c : all_) {
      const double there = axis.value(c);
      const double here = axis.value(pick_.candidate);
      if (same_but_for(axis, c, pick_.candidate) && (smaller ? there < here : there > here)) side.push_back(c);
    }
    std::sort(side.begin(), side.end(),
              [&](const Candidate& a, const Candidate& b) { return nearer(axis, a, b, smaller); });
    constexpr std::size_t kMostTried = 16;
    for (std::size_t i = 0; i < std::min(side.size(), kMostTried); ++i) {
      Answer answer = evaluator_.answer(side[i]);
      if (alike(answer, pick_)) continue;
      answer.reason = verdict_of(evaluator_, answer, evaluator_.runs_within_budget(answer), pick_);
      evaluator_.replay_allocator(answer);
      list.push_back({smaller ? axis.smaller : axis.larger, report_of(answer), answer.reason});
      return;
    }
  }

 private:
  Evaluator& evaluator_;
  Answer pick_;
  std::vector<Candidate> all_;
};

}  // namespace

std::vector<reports::Neighbour> neighbours_of(Evaluator& evaluator, const Answer& answer) {
  std::vector<reports::Neighbour> list;
  const std::vector<Axis> axes = axes_of(answer.candidate.policy);
  if (axes.empty()) return list;
  Neighbours neighbours(evaluator, answer.candidate);
  for (const Axis& axis : axes)
    for (const bool smaller : {true, false}) neighbours.add(axis, smaller, list);
  return list;
}

}  // namespace ebb
