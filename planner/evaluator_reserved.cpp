// What the allocator makes of a candidate: of which ranks every allocation is replayed, and whether the device holds
// it.
#include <algorithm>
#include <map>
#include <optional>

#include "planner/evaluator.hpp"
#include "planner/reserved.hpp"

namespace ebb {

namespace {

ReservedOptions options_of(const Job& job) { return {.expandable_segments = job.megatron.expandable_segments}; }

}  // namespace

/// Of each stage that may decide the rank with the highest bound, its first and its last rank. Over the job library a
/// replay needed at most 21 % more than its bound, and ranks of a stage with equal bounds differ by up to 10 %, by the
/// sizes of their pieces.
std::vector<std::size_t> Evaluator::reserving(const std::map<std::size_t, Bytes>& bounds) const {
  const std::vector<RankModel>& ranks = ranks_.ranks();
  std::map<const StageLayout*, std::size_t> highest;
  Bytes most{0};
  for (const auto& [rank, bound] : bounds) {
    const auto [known, is_first] = highest.emplace(ranks[rank].stage, rank);
    if (!is_first && bound > bounds.at(known->second)) known->second = rank;
    most = std::max(most, bound);
  }
  std::vector<std::size_t> chosen;
  for (std::size_t first = 0, last = 0; first < ranks.size(); first = last + 1) {
    last = first;
    while (last + 1 < ranks.size() && same_stage(ranks[last + 1], ranks[first])) ++last;
    const auto known = highest.find(ranks[first].stage);
    if (known == highest.end() || bounds.at(known->second).value / 4 * 5 < most.value) continue;
    chosen.insert(chosen.end(), {first, known->second, last});
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

bool Evaluator::runs_within_budget(const Answer& answer) const {
  return std::all_of(answer.reserving_ranks.begin(), answer.reserving_ranks.end(), [&](std::size_t rank) {
    return replayed(rank, answer.candidate, job_->checkpoint.start).has_value();
  });
}

std::optional<PredictedMemory> Evaluator::replayed(std::size_t rank, const Candidate& candidate, Start start) const {
  const std::tuple key{rank, candidate, start};
  {
    const std::lock_guard lock(replays_mutex_);
    const auto known = replays_.find(key);
    if (known != replays_.end()) return known->second;
  }
  // Megabytes of events: fresh memory for each trace would cost as much as writing them.
  thread_local AllocationTrace trace;
  allocation_trace_into(ranks_.ranks()[rank], candidate, {.start = start}, trace);
  const std::optional<PredictedMemory> memory = replay_within(trace, device_budget_of(*job_), options_of(*job_));
  const std::lock_guard lock(replays_mutex_);
  return replays_.emplace(key, memory).first->second;
}

namespace {

/// The least that the trace runs within, to 1 %. Preconditions: it does not within `too_little`, it does within
/// `enough`.
Bytes least_capacity(const AllocationTrace& trace, const ReservedOptions& options, Bytes too_little, Bytes enough) {
  while (enough.value - too_little.value > enough.value / 100) {
    const Bytes middle{too_little.value + (enough.value - too_little.value) / 2};
    (replay_within(trace, middle, options) ? enough : too_little) = middle;
  }
  return enough;
}

}  // namespace

Evaluator::Replayed Evaluator::replay(const Answer& answer, Start start) const {
  const Bytes budget = device_budget_of(*job_);
  const ReservedOptions options = options_of(*job_);
  Replayed all;
  for (const std::size_t index : answer.reserving_ranks) {
    Bytes needed{0};
    Bytes likely{0};
    if (const auto memory = replayed(index, answer.candidate, start)) {
      likely = memory->reserved;
      needed = memory->peak_reserved;
      all.peak = std::max(all.peak, memory->peak_allocated);
    } else {
      const AllocationTrace trace = allocation_trace(ranks_.ranks()[index], answer.candidate, {.start = start});
      const auto unlimited = replay_within(trace, kUnlimited, options).value_or(PredictedMemory{});
      needed = least_capacity(trace, options, budget, std::max(unlimited.peak_reserved, budget + Bytes{1}));
      const PredictedMemory at_least = replay_within(trace, needed, options).value_or(unlimited);
      likely = std::min(at_least.reserved, needed);
      all.peak = std::max(all.peak, at_least.peak_allocated);
      all.within_budget = false;
    }
    all.likely = std::max(all.likely, likely);
    all.needed = std::max(all.needed, needed);
  }
  return all;
}

void Evaluator::replay_allocator(Answer& answer) const {
  const Replayed all = replay(answer, job_->checkpoint.start);
  if (!all.within_budget) answer.fits_device = false;
  answer.device_reserved_likely = std::max(answer.device_reserved_likely, all.likely);
  answer.device_reserved = std::max(answer.device_reserved, all.needed);
  if (all.peak.value > 0) answer.device_peak = all.peak;
}

void Evaluator::replay_resume(Answer& answer) const {
  if (job_->checkpoint.start == Start::resume) {
    answer.device_resume = answer.device_reserved;
    return;
  }
  const PartBounds& bounds = answer.part_bounds;
  answer.device_resume = std::max({bounds.steps, bounds.save, bounds.resume, replay(answer, Start::resume).needed});
}

}  // namespace ebb
