#include "planner/rank_estimate.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "planner/chunking.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"

namespace ebb {

namespace {

struct Packing {
  std::size_t chunks = 1;
  double moved = -1;    // elements that cross the link each way; all owned ones when negative
  double tensors = -1;  // that they are in
  Bytes state{0};
  Bytes always{0};
};

Packing chunked(const RankModel& rank, Numel chunk_numel) {
  const std::span<const Shard> shards(rank.shards);
  Packing packing{.chunks = 0};
  for (const Chunk& chunk : chunk_by_numel(shards, chunk_numel)) {
    const auto in_chunk = shards.subspan(chunk.first, chunk.count);
    packing.state = std::max(packing.state, allocated_state(rank.job->precision, in_chunk, kAllState));
    ++packing.chunks;
  }
  return packing;
}

/// Masters of what moves, all state of what stays, and two slots for each optimizer, each as large as the largest chunk
/// that it holds in turn.
Packing windowed(const RankModel& rank, std::int64_t chunk_size_mb, double fraction) {
  const Precision& precision = rank.job->precision;
  const std::vector<bool> moves = offloaded_by_fraction(rank.shards, fraction, precision.state_bytes());
  std::vector<Shard> moving;
  std::vector<Shard> staying;
  for (std::size_t i = 0; i < moves.size(); ++i) (moves[i] ? moving : staying).push_back(rank.shards[i]);

  Packing packing{.chunks = 0};
  packing.always = allocated_state(precision, staying, kAllState);
  packing.state = packing.always + allocated_state(precision, moving, kMaster);
  packing.moved = static_cast<double>(owned(moving).value);
  packing.tensors = static_cast<double>(moving.size());
  Bytes slots[2];
  std::uint16_t optimizer = 0;
  std::size_t number = 0;  // of the chunk in its optimizer
  const std::span<const Shard> shards(moving);
  for (const Chunk& chunk : chunk_by_moments(shards, chunk_size_mb, precision.moment_bytes())) {
    if (packing.chunks == 0 || shards[chunk.first].optimizer != optimizer) {
      packing.state += slots[0] + slots[1];
      slots[0] = slots[1] = Bytes{0};
      optimizer = shards[chunk.first].optimizer;
      number = 0;
    }
    Bytes& slot = slots[number++ % 2];
    slot = std::max(slot, bytes_of(chunk.numel, precision.moment_bytes()));
    ++packing.chunks;
  }
  packing.state += slots[0] + slots[1];
  return packing;
}

Packing packing_of(const RankModel& rank, const Candidate& candidate) {
  const Precision& precision = rank.job->precision;
  const std::span<const Shard> shards(rank.shards);
  switch (candidate.policy) {
    case Policy::chunked:
      return chunked(rank, candidate.chunk_numel);
    case Policy::windowed:
      return windowed(rank, candidate.chunk_size_mb, candidate.fraction);
    case Policy::cpu_adam: {
      const std::size_t count = shards_on_host(rank, candidate.fraction);
      const Precision hybrid = precision_of(*rank.job, Policy::cpu_adam);
      const Bytes state = allocated_state(hybrid, shards.subspan(count), kAllState);
      return {.moved = static_cast<double>(owned(shards.first(count)).value),
              .tensors = static_cast<double>(count),
              .state = state,
              .always = state};
    }
    case Policy::resident: {
      const Bytes state = allocated_state(precision, shards, kAllState);
      return {.state = state, .always = state};
    }
    case Policy::full_reload:
    case Policy::pipelined:
    case Policy::tidal:
      break;
  }
  return {.state = allocated_state(precision, shards, kAllState)};
}

}  // namespace

RankEstimate estimate(const RankModel& rank, const Candidate& candidate) {
  const Cluster& cluster = rank.job->cluster;
  const Packing packing = packing_of(rank, candidate);
  const double moved = packing.moved < 0 ? static_cast<double>(rank.owned.value) : packing.moved;
  const double tensors = packing.tensors < 0 ? static_cast<double>(rank.shards.size()) : packing.tensors;
  const double state_bytes = static_cast<double>(rank.job->precision.state_bytes());
  double seconds = 2 * moved * state_bytes / cluster.host_link.h2d.value.value;
  // Host Adam is slower than the link by far, and all GPUs of the host wait for it.
  if (candidate.policy == Policy::cpu_adam) seconds += 28 * moved / cluster.host.cpu_adam.value.value;
  const double each_chunk = cluster.calls.chunk.value.value + cluster.calls.synchronize.value.value +
                            4 * static_cast<double>(rank.shards.size()) * cluster.calls.tensor_scan.value.value;
  const Bytes scales = allocated_scales(rank.job->precision, rank.shards);
  return {.seconds = seconds + 6 * tensors * cluster.host_link.latency.value.value +
                     static_cast<double>(packing.chunks) * each_chunk,
          .step_state = packing.state + rank.footprint.step_temporaries + scales,
          .always = packing.always + scales};
}

}  // namespace ebb
