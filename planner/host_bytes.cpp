#include <algorithm>

#include "planner/chunking.hpp"
#include "planner/host_parts.hpp"
#include "planner/lowerings.hpp"
#include "planner/tidal_pieces.hpp"

namespace ebb {

namespace {

using sim::PinnedLayout;
using sim::PinnedRounding;

void pin_state(const Precision& precision, const Shard& shard, HostParts& parts) {
  const auto add = [&](PinnedLayout& part, std::int64_t bytes_per_element) {
    if (bytes_per_element > 0) part.add(bytes_of(shard.numel, bytes_per_element), PinnedRounding::power_of_two);
  };
  add(parts.moments, size_of(precision.exp_avg));
  add(parts.moments, size_of(precision.exp_avg_sq));
  add(parts.masters, precision.master_bytes());
}

HostParts parts_of_state(const RankModel& rank, double fraction) {
  const Precision& precision = rank.job->precision;
  HostParts parts;
  std::vector<bool> moves;
  if (fraction < 1) moves = offloaded_by_fraction(rank.shards, fraction, precision.state_bytes());
  for (std::size_t i = 0; i < rank.shards.size(); ++i) {
    if (moves.empty() || moves[i]) pin_state(precision, rank.shards[i], parts);
  }
  return parts;
}

/// fp32 masters and gradients are pinned, the moments of the host's Adam are not (Megatron-LM hybrid_optimizer.py).
HostParts parts_of_cpu_adam(const RankModel& rank, double fraction) {
  const auto shards = std::span<const Shard>(rank.shards).first(shards_on_host(rank, fraction));
  HostParts parts;
  for (const Shard& shard : shards) parts.masters.add(bytes_of(shard.numel, 4), PinnedRounding::power_of_two);
  parts.grads = parts.masters;
  parts.pageable = bytes_of(owned(shards), 8);
  return parts;
}

}  // namespace

HostParts host_parts(const RankModel& rank, const Candidate& candidate) {
  switch (candidate.policy) {
    case Policy::resident:
      return {};
    case Policy::full_reload:
    case Policy::chunked:
      return parts_of_state(rank, 1.0);
    case Policy::windowed:
      return parts_of_state(rank, candidate.fraction);
    case Policy::cpu_adam:
      return parts_of_cpu_adam(rank, candidate.fraction);
    case Policy::pipelined:
    case Policy::tidal: {
      HostParts parts;
      const Numel moves = candidate.policy == Policy::pipelined ? rank.owned : tidal_pieces(rank, candidate)->moved();
      parts.region.add(bytes_of(moves, rank.job->precision.state_bytes()), PinnedRounding::exact);
      return parts;
    }
  }
  return {};
}

HostBytes host_bytes(const RankModel& rank, const Candidate& candidate) {
  HostParts parts = host_parts(rank, candidate);
  PinnedLayout& sum = parts.masters;
  sum += parts.moments;
  sum += parts.grads;
  sum += parts.region;
  return {.pinned = sum.held, .pageable = parts.pageable, .calls = sum.calls};
}

}  // namespace ebb
