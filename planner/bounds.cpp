#include "planner/bounds.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "planner/chunking.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/rank_estimate.hpp"
#include "sim/copy_rates.hpp"

namespace ebb {

namespace {

/// Sums of doubles in another order than the simulator's integers: give way by more than they can differ.
constexpr double kRoundingSlack = 1 - 1e-9;

}  // namespace

struct RankBounds::Transfers {
  std::vector<double> in, adam, out;  // seconds of each chunk
  double bytes = 0;                   // of both directions
};

RankBounds::RankBounds(const RankModel& rank, const StepSummary& resident, const sim::Sharing& sharing) : rank_(&rank) {
  bool finalize_seen = false;
  bool step_seen = false;
  for (const PhaseSummary& phase : resident.phases) {
    const double seconds = to_seconds(phase.duration).value;
    finalize_seen = finalize_seen || phase.phase == Phase::finalize;
    if (!finalize_seen) before_finalize_ += seconds;
    if (step_seen) after_step_ += seconds;
    step_seen = step_seen || phase.phase == Phase::step;
    if (phase.phase != Phase::step) frame_ += seconds;
  }
  const sim::CopyRates rates = sim::copy_rates(rank.job->cluster.host_link, sharing);
  const auto per_second = [&](unsigned set, unsigned direction) {
    return rates.bytes_per_tick[set][direction] * static_cast<double>(kTicksPerSecond);
  };
  h2d_ = per_second(1, 0);
  d2h_ = per_second(2, 1);
  most_ = std::max({h2d_, d2h_, per_second(3, 0) + per_second(3, 1)});
}

/// At the rate of the faster Adam: which one runs depends on the policy.
double RankBounds::adam_seconds(Numel numel, bool writes_params) const {
  const Gpu& gpu = rank_->job->cluster.gpu;
  const Bytes bytes = bytes_of(numel, adam_bytes_per_element(rank_->job->precision, writes_params));
  return (bytes / BytesPerSecond{std::max(gpu.adam.value.value, gpu.adam_foreach.value.value)}).value;
}

Seconds RankBounds::chunked_step(const Candidate& candidate, Numel& largest_chunk) const {
  const Job& job = *rank_->job;
  const Calls& calls = job.cluster.calls;
  const std::vector<Chunk> chunks = chunk_by_numel(rank_->shards, candidate.chunk_numel);
  for (const Chunk& chunk : chunks) largest_chunk = std::max(largest_chunk, chunk.numel);
  const double tensors = static_cast<double>(rank_->shards.size());
  const double each = calls.chunk.value.value + 4 * tensors * calls.tensor_scan.value.value +
                      2 * calls.launch.value.value + calls.synchronize.value.value;
  const auto bytes = static_cast<double>(bytes_of(rank_->owned, job.precision.state_bytes()).value);
  const Seconds cast = bytes_of(rank_->owned, cast_bytes_per_element(job.precision)) / job.cluster.gpu.hbm.value;
  return {frame_ + static_cast<double>(chunks.size()) * each + 6 * tensors * job.cluster.host_link.latency.value.value +
          bytes / h2d_ + bytes / d2h_ + adam_seconds(rank_->owned, false) + cast.value};
}

double RankBounds::longest_chain(const Transfers& t, std::size_t slots) const {
  if (t.in.empty()) return 0;
  double all_in = 0;
  double all_out = 0;
  std::vector<double> rounds(slots, 0);
  for (std::size_t k = 0; k < t.in.size(); ++k) {
    all_in += t.in[k];
    all_out += t.out[k];
    rounds[k % slots] += t.in[k] + t.adam[k] + t.out[k];
  }
  return std::max({all_in + t.adam.back() + t.out.back(), t.in.front() + t.adam.front() + all_out,
                   *std::max_element(rounds.begin(), rounds.end()), t.bytes / most_});
}

Seconds RankBounds::windowed_step(const Candidate& candidate, DeviceUse& use) const {
  const Precision& precision = rank_->job->precision;
  const double latency = rank_->job->cluster.host_link.latency.value.value;
  const std::vector<bool> moves = offloaded_by_fraction(rank_->shards, candidate.fraction, precision.state_bytes());
  std::vector<Shard> moving;
  for (std::size_t i = 0; i < moves.size(); ++i)
    if (moves[i]) moving.push_back(rank_->shards[i]);

  const Numel moved = owned(moving);
  use.leaving = bytes_of(moved, size_of(precision.master));
  use.always += bytes_of(rank_->owned - moved, precision.state_bytes());
  Transfers transfers;
  Bytes slots[2];
  const std::vector<Chunk> chunks = chunk_by_moments(moving, candidate.chunk_size_mb, precision.moment_bytes());
  const bool one_manager = !moving.empty() && moving.front().optimizer == moving.back().optimizer;
  for (std::size_t k = 0; k < chunks.size(); ++k) {
    const Bytes bytes = bytes_of(chunks[k].numel, precision.moment_bytes());
    const double wait = 2 * chunks[k].count * latency;
    transfers.in.push_back(wait + static_cast<double>(bytes.value) / h2d_);
    transfers.out.push_back(wait + static_cast<double>(bytes.value) / d2h_);
    transfers.adam.push_back(adam_seconds(chunks[k].numel, false));
    transfers.bytes += 2 * static_cast<double>(bytes.value);
    if (one_manager) slots[k % 2] = std::max(slots[k % 2], bytes);
  }
  use.step = use.always + use.leaving + slots[0] + slots[1];
  const double masters = static_cast<double>(moving.size()) * latency + static_cast<double>(use.leaving.value) / h2d_;
  // Several managers prefetch a chunk each, which no slot holds back: then only the other chains hold.
  const double windows = longest_chain(transfers, one_manager ? 2 : std::max<std::size_t>(chunks.size(), 1));
  return {std::max(frame_, before_finalize_ + masters + windows + after_step_)};
}

Seconds RankBounds::pipelined_step(const Candidate& candidate) const {
  const Precision& precision = rank_->job->precision;
  const double latency = rank_->job->cluster.host_link.latency.value.value;
  Transfers transfers;
  for (Numel left = rank_->owned; left > Numel{0}; left -= std::min(left, candidate.chunk_numel)) {
    const Numel numel = std::min(left, candidate.chunk_numel);
    const auto bytes = static_cast<double>(bytes_of(numel, precision.state_bytes()).value);
    transfers.in.push_back(latency + bytes / h2d_);
    transfers.out.push_back(latency + bytes / d2h_);
    transfers.adam.push_back(adam_seconds(numel, true));
    transfers.bytes += 2 * bytes;
  }
  return {frame_ + longest_chain(transfers, static_cast<std::size_t>(candidate.slots))};
}

Bound RankBounds::operator()(const Candidate& candidate) const {
  const Precision& precision = rank_->job->precision;
  const Footprint& footprint = rank_->footprint;
  const Bytes state = bytes_of(rank_->owned, precision.state_bytes());
  DeviceUse use;
  use.always = footprint.resident_total();
  Seconds step{frame_};
  switch (candidate.policy) {
    case Policy::resident:
      use.always += state;
      break;
    case Policy::full_reload:
      use.leaving = state;
      use.step = use.always + state;
      break;
    case Policy::chunked: {
      Numel largest{0};
      step = chunked_step(candidate, largest);
      use.step = use.always + bytes_of(largest, precision.state_bytes());
      break;
    }
    case Policy::windowed:
      step = windowed_step(candidate, use);
      break;
    case Policy::cpu_adam: {
      const auto stays =
          std::span<const Shard>(rank_->shards).subspan(shards_stepped_on_host(*rank_, candidate.fraction));
      use.always += bytes_of(owned(stays), precision.state_bytes());
      break;
    }
    case Policy::pipelined: {
      const Numel slots = std::min(candidate.chunk_numel * candidate.slots, rank_->owned);
      step = pipelined_step(candidate);
      use.step = use.always + bytes_of(slots, precision.state_bytes());
      break;
    }
  }
  use.forward_backward = use.always + footprint.activations + footprint.logits;
  return {step * kRoundingSlack, reserved_bound(candidate.policy, use)};
}

}  // namespace ebb
