#include "planner/bounds.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "planner/chunking.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "sim/copy_rates.hpp"

namespace ebb {

namespace {

/// Ranks of one stage come to their optimizer step at the same time, but for launches of a few shards more or less.
constexpr double kStartSlack = 0.999;

/// Sums of doubles in another order than the simulator's integers: give way by more than they can differ.
constexpr double kRoundingSlack = 1 - 1e-9;

}  // namespace

struct RankBounds::Transfers {
  std::vector<double> in, adam, out;  // seconds of each chunk
  double bytes = 0;                   // of both directions
  double first_bytes = 0;             // of the first copy in
  double last_bytes = 0;              // of the last copy out
  double shared = 0;                  // each way, and what all ranks of the host move as much of
};

RankBounds::RankBounds(const RankModel& rank, const StepSummary& resident, const HostLoad& host) : rank_(&rank) {
  bool step_seen = false;
  for (const PhaseSummary& phase : resident.phases) {
    const double seconds = to_seconds(phase.duration).value;
    if (step_seen) after_step_ += seconds;
    step_seen = step_seen || phase.phase == Phase::step;
    if (phase.phase != Phase::step) frame_ += seconds;
  }
  computed_ = host.computed.value;
  state_ = stored_state(rank.job->precision, rank.shards);
  const Cluster& cluster = rank.job->cluster;
  const sim::CopyRates shared = sim::copy_rates(cluster, {.ranks_per_host = host.ranks});
  const sim::CopyRates rates = host.alike ? shared : sim::copy_rates(cluster, {.ranks_per_host = 1});
  const auto most = [](const sim::CopyRates& r) { return std::max({r.h2d.value, r.d2h.value, r.both.value}); };
  h2d_ = rates.h2d.value;
  d2h_ = rates.d2h.value;
  most_ = most(rates);
  shared_h2d_ = shared.h2d.value;
  shared_d2h_ = shared.d2h.value;
  shared_most_ = most(shared);
  least_part_ = kStartSlack * static_cast<double>(host.least_owned.value) / static_cast<double>(rank.owned.value);
  // What is quantised moves more bytes than a cast does, and Adam that writes parameters leaves nothing to cast.
  const Precision& precision = rank.job->precision;
  const std::int64_t cast_bytes = adam_writes_params(precision) ? 0 : cast_bytes_per_element(precision);
  const Seconds cast = bytes_of(rank.owned, cast_bytes) / rank.job->cluster.gpu.hbm.value;
  kernels_ = adam_seconds(rank.owned, false) + cast.value;
}

/// At the rate of the faster Adam: which one runs depends on the policy.
double RankBounds::adam_seconds(Numel numel, bool writes_params) const {
  const Gpu& gpu = rank_->job->cluster.gpu;
  const Bytes bytes = bytes_of(numel, adam_bytes_per_element(rank_->job->precision, writes_params));
  return (bytes / BytesPerSecond{std::max(gpu.adam.value.value, gpu.adam_foreach.value.value)}).value;
}

/// What `bytes` each way take at least while all ranks of the host move as much.
double RankBounds::shared_seconds(double bytes) const {
  return least_part_ * std::max({bytes / shared_h2d_, bytes / shared_d2h_, 2 * bytes / shared_most_});
}

Seconds RankBounds::chunked_step(std::size_t chunks) const {
  const Job& job = *rank_->job;
  const Calls& calls = job.cluster.calls;
  const double tensors = static_cast<double>(rank_->shards.size());
  const double each =
      calls.chunk.value.value + 4 * tensors * calls.tensor_scan.value.value + calls.synchronize.value.value;
  const auto bytes = static_cast<double>(state_.value);
  return {frame_ + static_cast<double>(chunks) * each + 6 * tensors * job.cluster.host_link.latency.value.value +
          bytes / h2d_ + bytes / d2h_ + kernels_};
}

/// Every chain of waits is a lower bound on the time from the first copy in to the last copy out:
///   all copies in, then Adam and the copy out of the last chunk; the first chunk in and stepped, then all copies out
///   slot j: the copies in before its first chunk, its rounds of in, Adam, out, the copies out after its last chunk
///   all bytes at the rate of both directions, but for the first copy in and the last copy out, which are alone
///   all bytes of the host at the host's rates
double RankBounds::longest_chain(const Transfers& t, std::size_t slots) const {
  const std::size_t chunks = t.in.size();
  if (chunks == 0) return 0;
  double all_in = 0;
  double all_out = 0;
  for (std::size_t k = 0; k < chunks; ++k) all_in += t.in[k], all_out += t.out[k];
  double longest = std::max({all_in + t.adam.back() + t.out.back(), t.in.front() + t.adam.front() + all_out,
                             t.in.front() + t.out.back() + (t.bytes - t.first_bytes - t.last_bytes) / most_,
                             shared_seconds(t.shared)});
  double before = 0;  // copies in of the chunks before slot j's first
  for (std::size_t j = 0; j < std::min(slots, chunks); ++j) {
    double chain = before;
    std::size_t k = j;
    for (; k < chunks; k += slots) chain += t.in[k] + t.adam[k] + t.out[k];
    for (k -= slots - 1; k < chunks; ++k) chain += t.out[k];
    longest = std::max(longest, chain);
    before += t.in[j];
  }
  return longest;
}

const RankBounds::Split& RankBounds::split_at(double fraction) const {
  if (split_.fraction == fraction) return split_;
  const std::vector<bool> moves = offloaded_by_fraction(rank_->shards, fraction, rank_->job->precision.state_bytes());
  split_.fraction = fraction;
  split_.moving.clear();
  for (std::size_t i = 0; i < moves.size(); ++i)
    if (moves[i]) split_.moving.push_back(rank_->shards[i]);
  split_.moved = owned(split_.moving);
  return split_;
}

Seconds RankBounds::windowed_step(const Candidate& candidate, bool whole_family, DeviceUse& use) const {
  const Precision& precision = rank_->job->precision;
  const double latency = rank_->job->cluster.host_link.latency.value.value;
  const Split& split = split_at(candidate.fraction);
  use.leaving = bytes_of(split.moved, precision.master_bytes());
  use.always += bytes_of(rank_->owned - split.moved, precision.state_bytes());
  const auto moments = static_cast<double>(bytes_of(split.moved, precision.moment_bytes()).value);
  const auto tensors = static_cast<double>(split.moving.size());
  const double masters = tensors * latency + static_cast<double>(use.leaving.value) / h2d_;
  // At a fraction the ranks of a host move different parts of what they own.
  const double shared = candidate.fraction < 1 ? 0.0 : moments;
  double windows = std::max({2 * tensors * latency + moments / h2d_, 2 * tensors * latency + moments / d2h_,
                             2 * moments / most_, shared_seconds(shared)});
  double called = 0;  // the host's calls, one after another, and what follows the last
  Bytes slots[2];
  if (!whole_family) {
    Transfers transfers{.in = {}, .adam = {}, .out = {}, .bytes = 2 * moments, .shared = shared};
    const std::vector<Chunk> chunks = chunk_by_moments(split.moving, candidate.chunk_size_mb, precision.moment_bytes());
    // Several managers prefetch a chunk each, which no slot holds back: then only the other chains hold.
    const bool one_manager = split.moving.front().optimizer == split.moving.back().optimizer;
    for (std::size_t k = 0; k < chunks.size(); ++k) {
      const Bytes bytes = bytes_of(chunks[k].numel, precision.moment_bytes());
      const double wait = 2 * chunks[k].count * latency;
      transfers.in.push_back(wait + static_cast<double>(bytes.value) / h2d_);
      transfers.out.push_back(wait + static_cast<double>(bytes.value) / d2h_);
      transfers.adam.push_back(adam_seconds(chunks[k].numel, false));
      if (one_manager) slots[k % 2] = std::max(slots[k % 2], bytes);
      if (k == 0) transfers.first_bytes = static_cast<double>(bytes.value);
      transfers.last_bytes = static_cast<double>(bytes.value);
    }
    const double calls = static_cast<double>(chunks.size()) * rank_->job->cluster.calls.chunk.value.value;
    // A gather that follows the step waits for the last Adam, not for the last copy out.
    called = calls + transfers.adam.back() + std::max(transfers.out.back() - after_step_, 0.0);
    windows = std::max(windows, longest_chain(transfers, one_manager ? 2 : chunks.size()));
  }
  use.step = use.always + use.leaving + slots[0] + slots[1];
  return {std::max({frame_ + kernels_, frame_ + called, computed_ + masters + windows})};
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
    transfers.shared += bytes;
    if (transfers.in.size() == 1) transfers.first_bytes = bytes;
    transfers.last_bytes = bytes;
  }
  return {frame_ + longest_chain(transfers, static_cast<std::size_t>(candidate.slots))};
}

Bound RankBounds::operator()(const Candidate& candidate) const { return bound(candidate, false); }
Bound RankBounds::of_family(const Candidate& candidate) const { return bound(candidate, true); }

Bound RankBounds::bound(const Candidate& candidate, bool whole_family) const {
  const Precision& precision = rank_->job->precision;
  const Footprint& footprint = rank_->footprint;
  const Bytes state = state_;
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
      std::vector<Chunk> chunks;
      if (!whole_family) chunks = chunk_by_numel(rank_->shards, candidate.chunk_numel);
      Numel largest{0};
      for (const Chunk& chunk : chunks) largest = std::max(largest, chunk.numel);
      step = chunked_step(chunks.size());
      use.step = use.always + bytes_of(largest, precision.state_bytes());
      break;
    }
    case Policy::windowed:
      step = windowed_step(candidate, whole_family, use);
      break;
    case Policy::cpu_adam: {
      const auto stays = std::span<const Shard>(rank_->shards).subspan(shards_on_host(*rank_, candidate.fraction));
      use.always += bytes_of(owned(stays), precision_of(*rank_->job, Policy::cpu_adam).state_bytes());
      break;
    }
    case Policy::tidal:  // what of the transfer hides is the schedule's; Adam itself never does
      step += Seconds{adam_seconds(rank_->owned, true)};
      break;
    case Policy::pipelined: {
      if (whole_family) break;
      const Numel slots = std::min(candidate.chunk_numel * candidate.slots, rank_->owned);
      step = pipelined_step(candidate);
      use.step = use.always + bytes_of(slots, precision.state_bytes());
      break;
    }
  }
  use.forward_backward = use.always + footprint.lazy_columns + footprint.activations + footprint.logits;
  return {step * kRoundingSlack, reserved_bound(candidate.policy, use)};
}

}  // namespace ebb
