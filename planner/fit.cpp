#include "planner/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <map>
#include <utility>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "planner/answers.hpp"
#include "planner/compute_model.hpp"
#include "planner/constraints.hpp"
#include "planner/fit_axis.hpp"
#include "planner/recommend.hpp"

namespace ebb {

namespace {

struct GoalWord {
  std::string_view word;
  FitGoal goal;
  bool largest;
};

constexpr std::array kGoals = {GoalWord{"sequence", FitGoal::sequence, true},
                               GoalWord{"micro-batch", FitGoal::micro_batch, true},
                               GoalWord{"layers", FitGoal::layers, true}, GoalWord{"gpus", FitGoal::gpus, false},
                               GoalWord{"host-memory", FitGoal::host_memory, false}};

/// Neighbours of a boundary that are tried as well, on each side.
constexpr std::int64_t kNeighbours = 3;

}  // namespace

std::string_view name_of(FitGoal goal) {
  return std::find_if(kGoals.begin(), kGoals.end(), [&](const GoalWord& known) { return known.goal == goal; })->word;
}

std::string_view name_of(FitStop stop) {
  switch (stop) {
    case FitStop::nothing:
      return "";
    case FitStop::rule:
      return "rule";
    case FitStop::policy:
      return "policy";
    case FitStop::device_budget:
      return "device-budget";
    case FitStop::host_budget:
      return "host-budget";
    case FitStop::numa:
      return "numa";
  }
  return "";
}

std::vector<std::string> fit_goal_words(bool largest) {
  std::vector<std::string> words;
  for (const GoalWord& known : kGoals)
    if (known.largest == largest) words.emplace_back(known.word);
  return words;
}

std::optional<FitGoal> fit_goal_named(std::string_view word) {
  for (const GoalWord& known : kGoals)
    if (known.word == word) return known.goal;
  return std::nullopt;
}

namespace {

/// Roofline against roofline: what a measured step would take at another size.
Job with_scaled_compute(const Job& job, Job changed) {
  if (!job.compute.step_seconds) return changed;
  const auto roofline = [](Job j) {
    j.compute.step_seconds.reset();
    const ComputeTime time = compute_time(j, 0);
    return (time.forward + time.backward).value;
  };
  changed.compute.step_seconds = *job.compute.step_seconds * (roofline(changed) / roofline(job));
  return changed;
}

/// A value's job; nullopt where the rules forbid it.
std::optional<Job> job_at(const Job& job, FitGoal goal, std::int64_t value, std::string& obstacle) {
  try {
    Job changed = with_value(job, goal, value);
    check(changed);
    return with_scaled_compute(job, std::move(changed));
  } catch (const InputError& error) {
    obstacle = error.what();
    return std::nullopt;
  }
}

/// Of what is in question, the one that needs least: it breaks last.
std::optional<Answer> nearest_of(const SearchResult& result, std::optional<Policy> fixed) {
  std::optional<Answer> nearest;
  for (const Answer& answer : result.candidates)
    if (in_question(answer, fixed) && (!nearest || smaller(answer, *nearest))) nearest = answer;
  return nearest;
}

FitStop stop_of(const std::optional<Answer>& nearest, Bytes host_budget) {
  if (!nearest) return FitStop::policy;
  if (!nearest->fits_device) return FitStop::device_budget;
  return nearest->host_needed() > host_budget ? FitStop::host_budget : FitStop::numa;
}

FitPoint point_of(const Job& job, std::int64_t value, Megatron megatron) {
  const SearchResult result = search(job, {.megatron = megatron, .cures = false, .likely = true});
  if (result.recommended) return {value, result.candidates[*result.recommended], "", FitStop::nothing};
  std::optional<Answer> nearest = nearest_of(result, job.offload.policy);
  const FitStop stop = stop_of(nearest, result.host_budget);
  return {value, std::move(nearest), result.shortfall, stop};
}

class Boundary {
 public:
  Boundary(const Job& job, FitGoal goal, Megatron megatron, const FitAxis& axis)
      : job_(job), goal_(goal), megatron_(megatron), axis_(axis) {}

  /// The last index that fits, -1: none.
  std::int64_t last_that_fits(std::int64_t start);
  /// The first that does, size(): none.
  std::int64_t first_that_fits();
  std::optional<FitPoint> point(std::int64_t index) const;

 private:
  bool fits(std::int64_t index);
  std::int64_t climb(std::int64_t good);
  std::int64_t bisect(std::int64_t good, std::int64_t bad);

  const Job& job_;
  FitGoal goal_;
  Megatron megatron_;
  const FitAxis& axis_;
  std::map<std::int64_t, bool> known_;  // by index
};

bool Boundary::fits(std::int64_t index) {
  const auto known = known_.find(index);
  if (known != known_.end()) return known->second;
  std::string obstacle;
  const std::optional<Job> job = job_at(job_, goal_, axis_.at(index), obstacle);
  return known_[index] = job && anything_fits(*job, megatron_);
}

std::int64_t Boundary::bisect(std::int64_t good, std::int64_t bad) {
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

/// From an index that fits, doubling the stride.
std::int64_t Boundary::climb(std::int64_t good) {
  for (std::int64_t stride = 1;; stride *= 2) {
    const std::int64_t next = std::min(good + stride, axis_.size());
    if (next == axis_.size() || !fits(next)) return bisect(good, next);
    good = next;
  }
}

std::int64_t Boundary::last_that_fits(std::int64_t start) {
  std::int64_t last = start;
  if (fits(start)) {
    last = climb(start);
  } else {
    std::int64_t bad = start;
    std::int64_t good = -1;
    for (std::int64_t stride = 1; bad > 0; stride *= 2) {
      const std::int64_t next = std::max<std::int64_t>(bad - stride, 0);
      if (fits(next)) {
        good = next;
        break;
      }
      bad = next;
    }
    last = bisect(good, bad);
  }
  // Whether memory really grows with the value: on from a neighbour that fits although the one before does not.
  for (std::int64_t beyond = 2; beyond <= 1 + kNeighbours && last + beyond < axis_.size(); ++beyond) {
    if (!fits(last + beyond)) continue;
    last = climb(last + beyond);
    beyond = 1;
  }
  return last;
}

std::int64_t Boundary::first_that_fits() {
  std::int64_t index = 0;
  while (index < axis_.size() && !fits(index)) ++index;
  return index;
}

std::optional<FitPoint> Boundary::point(std::int64_t index) const {
  const bool on_axis = index >= 0 && index < axis_.size();
  FitPoint broken;
  broken.value = on_axis ? axis_.at(index) : axis_.beyond(index < 0);
  broken.stop = FitStop::rule;
  if (broken.value == 0) return std::nullopt;
  const std::optional<Job> job = job_at(job_, goal_, broken.value, broken.obstacle);
  if (job && !on_axis) return std::nullopt;  // no rule forbids it: it is only further than fit looks
  return job ? point_of(*job, broken.value, megatron_) : broken;
}

FitLimit largest(const Job& job, FitGoal goal, Megatron megatron, const FitAxis& axis, bool offload) {
  Job limited = job;
  if (!offload) limited.offload = {.policy = Policy::resident};
  const std::int64_t own = goal == FitGoal::sequence ? job.batch.sequence
                           : goal == FitGoal::layers ? job.model.layers
                                                     : job.batch.micro;
  Boundary boundary(limited, goal, megatron, axis);
  const std::int64_t last = boundary.last_that_fits(axis.index_of(own));
  return {offload, last < 0 ? std::nullopt : boundary.point(last), boundary.point(last + 1)};
}

FitLimit fewest_gpus(const Job& job, Megatron megatron, const FitAxis& axis, bool offload) {
  Job limited = job;
  if (!offload) limited.offload = {.policy = Policy::resident};
  Boundary boundary(limited, FitGoal::gpus, megatron, axis);
  const std::int64_t first = boundary.first_that_fits();
  return {offload, first == axis.size() ? std::nullopt : boundary.point(first), boundary.point(first - 1)};
}

/// Why this schedule: of all of them, not of the one policy that was searched for.
FitPoint with_reason(FitPoint point, const Job& job) {
  if (point.stop == FitStop::nothing)
    point.answer->reason = fmt::format(
        "{} needs the least memory of a host of the schedules {} and that fit: {}{}, {} of it pinned",
        name_of(point.answer->candidate.policy), job.offload.policy ? "that the job asks for" : "that you can deploy",
        format_bytes(point.answer->host_needed()), when_host_decided(*point.answer),
        format_bytes(point.answer->host_pinned_per_host));
  return point;
}

/// Chunk sizes and slots do not change what lies on the host, so policies and fractions are tried, least first.
FitLimit least_host_memory(const Job& job, Megatron megatron) {
  struct Part {
    Bytes bytes;
    Candidate candidate;
  };
  std::vector<Part> parts;
  Answers answers(job, megatron);
  for (const Policy policy : kPolicies) {
    if (!answers.in_question(policy)) continue;
    for (const Family& family : answers.families(policy))
      parts.push_back({answers.evaluator().host(family.front()).per_host, family.front()});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.bytes < b.bytes; });
  const auto limited_to = [&](const Candidate& candidate) {
    Job limited = job;
    limited.offload.policy = candidate.policy;
    if (candidate.policy == Policy::windowed || candidate.policy == Policy::cpu_adam)
      limited.offload.fraction = candidate.fraction;
    return limited;
  };
  FitLimit limit;
  for (const Part& part : parts) {
    const Job limited = limited_to(part.candidate);
    if (anything_fits(limited, megatron)) {
      limit.fits = with_reason(point_of(limited, part.bytes.value, megatron), job);
      break;
    }
    limit.breaks = point_of(limited, part.bytes.value, megatron);
  }
  return limit;
}

}  // namespace

FitResult fit(const Job& job, FitGoal goal, Megatron megatron) {
  FitResult result;
  result.goal = goal;
  if (goal == FitGoal::host_memory) {
    result.step = 0;
    result.limits.push_back(least_host_memory(job, megatron));
    return result;
  }
  const FitAxis axis(job, goal);
  result.step = axis.step();
  const auto limit = [&](bool offload) {
    return goal == FitGoal::gpus ? fewest_gpus(job, megatron, axis, offload)
                                 : largest(job, goal, megatron, axis, offload);
  };
  // Each on its own: nothing is shared. Where the job asks for resident state there is only one question.
  if (job.offload.policy == Policy::resident) {
    result.limits.push_back(limit(false));
  } else {
    std::future<FitLimit> resident = std::async(std::launch::async, limit, false);
    result.limits.push_back(limit(true));
    result.limits.push_back(resident.get());
  }
  if (job.compute.step_seconds)
    result.notes.emplace_back("compute.step_seconds is scaled from the job's own size like the roofline");
  return result;
}

}  // namespace ebb
