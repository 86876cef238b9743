// Host memory of each policy: one pinned tensor a shard and state, as torch's caching host allocator rounds it, or one
// exact region for Ebb's own runtime.
#include <algorithm>

#include "planner/chunking.hpp"
#include "planner/lowerings.hpp"
#include "sim/torch_allocator.hpp"

namespace ebb {

namespace {

Bytes pinned_tensors(std::span<const Shard> shards, std::int64_t bytes_per_element) {
  Bytes sum{0};
  for (const Shard& shard : shards) sum += sim::pinned_block_bytes(bytes_of(shard.numel, bytes_per_element));
  return sum;
}

Bytes pinned_state(const Precision& precision, std::span<const Shard> shards) {
  return pinned_tensors(shards, size_of(precision.exp_avg)) + pinned_tensors(shards, size_of(precision.exp_avg_sq)) +
         pinned_tensors(shards, size_of(precision.master));
}

Bytes pinned_windowed(const RankModel& rank, double fraction) {
  const Precision& precision = rank.job->precision;
  if (fraction >= 1) return pinned_state(precision, rank.shards);
  const std::vector<bool> moves = offloaded_by_fraction(rank.shards, fraction, precision.state_bytes());
  Bytes sum{0};
  for (std::size_t i = 0; i < rank.shards.size(); ++i) {
    if (moves[i]) sum += pinned_state(precision, {&rank.shards[i], 1});
  }
  return sum;
}

}  // namespace

HostBytes host_bytes(const RankModel& rank, const Candidate& candidate) {
  const Precision& precision = rank.job->precision;
  switch (candidate.policy) {
    case Policy::resident:
      return {};
    case Policy::full_reload:
    case Policy::chunked:
      return {.pinned = pinned_state(precision, rank.shards)};
    case Policy::windowed:
      return {.pinned = pinned_windowed(rank, candidate.fraction)};
    case Policy::cpu_adam: {
      // fp32 masters and gradients are pinned, the moments of the host's Adam are not (Megatron-LM
      // hybrid_optimizer.py).
      const auto shards = std::span<const Shard>(rank.shards).first(shards_on_host(rank, candidate.fraction));
      return {.pinned = pinned_tensors(shards, 4) * 2, .pageable = bytes_of(owned(shards), 8)};
    }
    case Policy::pipelined:
      return {.pinned = bytes_of(rank.owned, precision.state_bytes())};
  }
  return {};
}

}  // namespace ebb
