#include "planner/evaluator.hpp"

#include <algorithm>

#include "models/errors.hpp"
#include "planner/chunking.hpp"

namespace ebb {

namespace {

/// What a rank's packing under a candidate adds to its time and memory beyond its share of elements.
struct Packing {
  std::size_t chunks = 0;
  Numel largest{0};
};

Packing packing_of(const RankModel& rank, const Candidate& candidate) {
  std::vector<Chunk> chunks;
  if (candidate.policy == Policy::chunked) chunks = chunk_by_numel(rank.shards, candidate.chunk_numel);
  if (candidate.policy == Policy::windowed)
    chunks = chunk_by_moments(rank.shards, candidate.chunk_size_mb, rank.job->precision.moment_bytes());
  Packing packing{.chunks = chunks.size()};
  for (const Chunk& chunk : chunks) packing.largest = std::max(packing.largest, chunk.numel);
  return packing;
}

/// Seconds that tell ranks apart: not a prediction, but linear in everything that makes one rank slower than another.
double time_estimate(const RankModel& rank, const Packing& packing) {
  const Cluster& cluster = rank.job->cluster;
  const double bytes = static_cast<double>(bytes_of(rank.owned, rank.job->precision.state_bytes()).value);
  const double tensors = static_cast<double>(rank.shards.size());
  const double each_chunk = cluster.calls.chunk.value.value + cluster.calls.synchronize.value.value +
                            4 * tensors * cluster.calls.tensor_scan.value.value;
  return rank.compute.forward.value + rank.compute.backward.value + 2 * bytes / cluster.host_link.h2d.value.value +
         6 * tensors * cluster.host_link.latency.value.value + static_cast<double>(packing.chunks) * each_chunk;
}

/// Bytes that tell ranks apart: the state that is on the device together, or else what forward and backward hold.
Bytes memory_estimate(const RankModel& rank, const Packing& packing) {
  const Bytes state = bytes_of(packing.chunks > 0 ? packing.largest : rank.owned, rank.job->precision.state_bytes());
  const Footprint& footprint = rank.footprint;
  // Both count, so that of ranks with equal activations the one with the larger chunk is chosen.
  return footprint.resident_total() + footprint.activations + footprint.logits + state;
}

bool same_stage(const RankModel& a, const RankModel& b) { return a.stage == b.stage; }

}  // namespace

Evaluator::Evaluator(const Job& job) : job_(&job), ranks_(job) {
  sharing_.ranks_per_host = std::min(job.cluster.gpus_per_host, job.parallel.gpus);
  const Candidate resident;
  struct Extreme {
    std::size_t rank = 0;
    double value = -1;
  } slowest, fullest;
  std::map<std::size_t, StepSummary> summaries;
  for (const std::size_t rank : ranks_to_simulate(resident)) {
    simulate(rank, resident);
    summaries[rank] = summary_;
    const double step = to_seconds(summary_.total).value;
    const double peak = static_cast<double>(summary_.peak_held.value);
    if (step > slowest.value) slowest = {rank, step};
    if (peak > fullest.value) fullest = {rank, peak};
  }
  resident_step_ = slowest.value;
  deciding_ = {slowest.rank};
  if (fullest.rank != slowest.rank) deciding_.push_back(fullest.rank);
  for (const std::size_t rank : deciding_) bounds_.emplace_back(ranks_.ranks()[rank], summaries[rank], sharing_);
}

std::vector<std::vector<Shard>> Evaluator::deciding_shards() const {
  std::vector<std::vector<Shard>> shards;
  for (const std::size_t rank : deciding_) shards.push_back(ranks_.ranks()[rank].shards);
  return shards;
}

Bound Evaluator::bound(const Candidate& candidate) const {
  Bound highest;
  for (const RankBounds& of_rank : bounds_) {
    const Bound bound = of_rank(candidate);
    highest.step = std::max(highest.step, bound.step);
    highest.reserved = std::max(highest.reserved, bound.reserved);
  }
  return highest;
}

Bound Evaluator::probe(const Candidate& candidate) {
  Bound highest;
  for (const std::size_t rank : deciding_) {
    simulate(rank, candidate);
    highest.step = std::max(highest.step, to_seconds(summary_.total));
    highest.reserved = std::max(highest.reserved, reserved_bound(candidate.policy, device_use(plan_, summary_)));
  }
  return highest;
}

void Evaluator::simulate(std::size_t rank, const Candidate& candidate) {
  lower_into(ranks_.ranks()[rank], candidate, plan_);
  simulator_.run(plan_, job_->cluster, sharing_, timeline_);
  summarize(plan_, timeline_, scratch_, summary_);
}

/// The deciding ranks, so that no answer is below its bound, and two ranks of each stage.
std::vector<std::size_t> Evaluator::ranks_to_simulate(const Candidate& candidate) const {
  const std::vector<RankModel>& ranks = ranks_.ranks();
  std::vector<std::size_t> chosen = deciding_;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t slowest = first;
    std::size_t fullest = first;
    double longest = -1;
    Bytes most{-1};
    std::size_t i = first;
    for (; i < ranks.size() && same_stage(ranks[i], ranks[first]); ++i) {
      const Packing packing = packing_of(ranks[i], candidate);
      const double time = time_estimate(ranks[i], packing);
      const Bytes memory = memory_estimate(ranks[i], packing);
      if (time > longest) slowest = i;
      if (memory > most) fullest = i;
      longest = std::max(longest, time);
      most = std::max(most, memory);
    }
    chosen.push_back(slowest);
    chosen.push_back(fullest);
    first = i;
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

Answer Evaluator::answer(const Candidate& candidate) { return answer_on(candidate, ranks_to_simulate(candidate)); }

Answer Evaluator::answer_of_all_ranks(const Candidate& candidate) {
  std::vector<std::size_t> all(ranks_.ranks().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return answer_on(candidate, all);
}

namespace {

/// What torch would hold at most if this phase were the only one.
Bytes reserved_in(const PhaseSummary& phase, bool in_step, Policy policy, DeviceUse use) {
  use.forward_backward = in_step ? use.always : phase.peak_allocated;
  use.step = in_step ? phase.peak_held : use.always;
  return reserved_bound(policy, use);
}

/// Durations of the slowest rank; memory of whichever rank holds most in the phase.
void merge_phases(const StepSummary& summary, Policy policy, const DeviceUse& use, bool slowest, Answer& answer) {
  for (std::size_t i = 0; i < summary.phases.size(); ++i) {
    const PhaseSummary& phase = summary.phases[i];
    const bool in_step = in_step_window(summary.phases, i);
    auto same = std::find_if(answer.phases.begin(), answer.phases.end(),
                             [&](const PhaseAnswer& other) { return other.phase == phase.phase; });
    if (same == answer.phases.end()) {
      answer.phases.push_back({.phase = phase.phase});
      same = answer.phases.end() - 1;
    }
    if (slowest) same->duration = to_seconds(phase.duration);
    same->device_peak = std::max(same->device_peak, phase.peak_allocated);
    same->device_reserved = std::max(same->device_reserved, reserved_in(phase, in_step, policy, use));
  }
}

/// What lies on the device between steps: every buffer that is there when the step starts.
std::vector<Term> terms_between_steps(const Plan& plan) {
  std::vector<Term> terms;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.memory == Memory::device && buffer.initial) terms.push_back({buffer.name, buffer.bytes});
  return terms;
}

Seconds optimizer_of(const StepSummary& summary) {
  Ticks sum{0};
  for (const PhaseSummary& phase : summary.phases)
    if (phase.phase == Phase::step) sum += phase.duration;
  return to_seconds(sum);
}

}  // namespace

Answer Evaluator::answer_on(const Candidate& candidate, std::span<const std::size_t> ranks) {
  EBB_ASSERT(!ranks.empty());
  Answer answer;
  answer.candidate = candidate;
  answer.flags = flags_of(candidate);
  answer.requires_megatron = requirement_of(candidate.policy);
  answer.objection = objection_to(*job_, candidate);
  for (const std::size_t rank : ranks) {
    simulate(rank, candidate);
    const DeviceUse use = device_use(plan_, summary_);
    const Seconds step = to_seconds(summary_.total);
    merge_phases(summary_, candidate.policy, use, step > answer.step, answer);
    answer.step = std::max(answer.step, step);
    answer.optimizer = std::max(answer.optimizer, optimizer_of(summary_));
    if (summary_.peak_allocated > answer.device_peak) {
      answer.device_peak = summary_.peak_allocated;
      answer.device_terms = terms_between_steps(plan_);
    }
    answer.device_between_steps = std::max(answer.device_between_steps, use.always + use.leaving);
    answer.device_reserved = std::max(answer.device_reserved, reserved_bound(candidate.policy, use));
  }
  const HostBytes host_bytes = host(candidate);
  answer.host_pinned_per_rank = host_bytes.pinned;
  answer.host_pinned_per_host = host_bytes.pinned * sharing_.ranks_per_host;
  answer.host_pageable_per_host = host_bytes.pageable * sharing_.ranks_per_host;
  for (PhaseAnswer& phase : answer.phases) phase.host_pinned = host_bytes.pinned;
  answer.fits_device = answer.device_reserved <= device_budget_of(*job_);
  answer.fits_host = fits_host(candidate);
  answer.slowdown = answer.step.value / resident_step_;
  return answer;
}

HostBytes Evaluator::host(const Candidate& candidate) {
  Candidate key;  // chunk sizes and slots do not change what lies on the host
  key.policy = candidate.policy;
  key.fraction = candidate.fraction;
  const auto known = host_.find(key);
  if (known != host_.end()) return known->second;
  HostBytes most;
  for (const RankModel& rank : ranks_.ranks()) {
    const HostBytes bytes = host_bytes(rank, candidate);
    most.pinned = std::max(most.pinned, bytes.pinned);
    most.pageable = std::max(most.pageable, bytes.pageable);
  }
  return host_[key] = most;
}

bool Evaluator::fits_host(const Candidate& candidate) {
  const HostBytes bytes = host(candidate);
  const std::int64_t ranks = sharing_.ranks_per_host;
  // The budget is for pinned memory; what is pageable must find room as well.
  return bytes.pinned * ranks <= host_budget_of(*job_) &&
         (bytes.pinned + bytes.pageable) * ranks <= job_->cluster.host.memory.value;
}

}  // namespace ebb
