#include "planner/fit_axis.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"
#include "planner/compute_model.hpp"
#include "planner/constraints.hpp"

namespace ebb {

namespace {

/// The limits of the rules (rules_sizes.cpp).
constexpr std::int64_t kMostSequence = 1 << 30;
constexpr std::int64_t kMostLayers = 4096;
constexpr std::int64_t kMostGpus = 1 << 18;
/// GPUs beyond the job's own that are tried.
constexpr std::int64_t kMostGrowth = 64;

/// The least step from `start` on that the rules allow, in multiples of `unit`.
std::int64_t allowed_step(const Job& job, FitGoal goal, std::int64_t start, std::int64_t unit, std::int64_t most) {
  for (std::int64_t step = unit; step <= most; step += unit)
    if (is_valid(with_value(job, goal, start + step))) return step;
  return 0;
}

const char* key_of(FitGoal goal) { return goal == FitGoal::layers ? "model.layers" : "batch.sequence"; }

std::vector<std::int64_t> divisors_up_to(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> list;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) list.push_back(d);
  return list;
}

std::vector<std::int64_t> micro_batches(const Job& job) {
  std::vector<std::int64_t> list = divisors_up_to(job.batch.global / job.parallel.data(), 1 << 20);
  std::erase_if(list, [&](std::int64_t micro) { return !is_valid(with_value(job, FitGoal::micro_batch, micro)); });
  return list;
}

std::vector<std::int64_t> gpu_counts(const Job& job) {
  const Parallel& p = job.parallel;
  const std::int64_t replica = p.tensor * p.context * p.pipeline;
  std::vector<std::int64_t> list;
  for (const std::int64_t data : divisors_up_to(job.batch.global / job.batch.micro, kMostGpus / replica)) {
    const std::int64_t gpus = data * replica;
    if (gpus <= p.gpus * kMostGrowth && is_valid(with_value(job, FitGoal::gpus, gpus))) list.push_back(gpus);
  }
  return list;
}

}  // namespace

bool is_valid(const Job& job) {
  try {
    check(job);
    compute_time(job, 0);  // splits the layers
    return true;
  } catch (const InputError&) {
    return false;
  }
}

Job with_value(const Job& job, FitGoal goal, std::int64_t value) {
  Job changed = job;
  switch (goal) {
    case FitGoal::sequence:
      changed.batch.sequence = value;
      break;
    case FitGoal::micro_batch:
      changed.batch.micro = value;
      break;
    case FitGoal::layers:
      changed.model.layers = value;
      changed.model.published_parameters.reset();
      break;
    case FitGoal::gpus:
      changed.parallel.gpus = value;
      break;
    case FitGoal::host_memory:
      break;
  }
  return changed;
}

FitAxis::FitAxis(const Job& job, FitGoal goal) {
  if (goal == FitGoal::micro_batch || goal == FitGoal::gpus) {
    listed_ = goal == FitGoal::gpus ? gpu_counts(job) : micro_batches(job);
    count_ = static_cast<std::int64_t>(listed_.size());
    EBB_ASSERT(count_ > 0);  // the job's own value is one
    return;
  }
  const bool layers = goal == FitGoal::layers;
  if (layers && job.model.moe && !job.model.moe->layer_pattern.empty())
    throw InputError(job.place_of("model"), "moe.layer_pattern names each layer, so that their number is fixed",
                     "use first_dense_layers and layer_freq");
  const std::int64_t unit = layers ? 1 : 128 * job.parallel.context;
  const std::int64_t start = layers ? job.model.layers : 0;
  step_ = allowed_step(job, goal, start, unit, layers ? 4 * start : 4096 * unit);
  if (step_ == 0)
    throw InputError(job.place_of(key_of(goal)), fmt::format("no other {} obeys the job's rules", name_of(goal)),
                     layers ? "leave out pipeline_layout" : "see ebb check");
  first_ = start % step_ == 0 ? step_ : start % step_;
  count_ = ((layers ? kMostLayers : kMostSequence) - first_) / step_ + 1;
}

std::int64_t FitAxis::beyond(bool below) const {
  if (listed_.empty()) return below ? std::max<std::int64_t>(first_ - step_, 0) : at(count_ - 1) + step_;
  return below ? listed_.front() / 2 : listed_.back() * 2;
}

std::int64_t FitAxis::index_of(std::int64_t value) const {
  if (listed_.empty()) return std::clamp<std::int64_t>((value - first_) / step_, 0, count_ - 1);
  const auto above = std::upper_bound(listed_.begin(), listed_.end(), value);
  return std::max<std::int64_t>(0, above - listed_.begin() - 1);
}

}  // namespace ebb
