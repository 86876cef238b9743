// `windowed` in an AllocationTrace. Source: Megatron-LM dev d48bd6be0a, chunked_optimizer_state_offload.py (#6244):
// masters are rebound to host memory while their copies run, so that the allocator cannot reuse them before; they come
// back as fresh tensors; moments pass through two flat buffers that grow when a chunk does not fit and go after the
// step. In the first step pinning host memory takes so long that the copies have ended before forward.
#include <algorithm>
#include <utility>

#include "planner/allocation_trace_state.hpp"
#include "planner/chunking.hpp"

namespace ebb {

void StateTrace::split_managers() {
  const std::span<const Shard> shards(rank_.shards);
  const Precision& precision = rank_.job->precision;
  const std::vector<bool> moves = offloaded_by_fraction(shards, candidate_.fraction, precision.state_bytes());
  for (std::size_t first = 0; first < shards.size();) {
    std::size_t end = first;
    std::size_t cut = first;
    for (; end < shards.size() && shards[end].optimizer == shards[first].optimizer; ++end)
      if (moves[end]) cut = end + 1;  // what moves comes first in each optimizer
    Manager manager;
    manager.moves = {first, cut};
    manager.stays = {cut, end};
    const auto moving = shards.subspan(first, cut - first);
    for (const Chunk& chunk : chunk_by_moments(moving, candidate_.chunk_size_mb, precision.moment_bytes()))
      manager.chunks.push_back({first + chunk.first, first + chunk.first + chunk.count});
    managers_.push_back(std::move(manager));
    first = end;
  }
}

void StateTrace::masters_leave(bool first) {
  if (precision_.master_bytes() == 0 || (first && !masters_at_init_)) return;
  const Cluster& cluster = rank_.job->cluster;
  const auto sharing = static_cast<double>(std::min(cluster.gpus_per_host, rank_.job->parallel.gpus));
  const BytesPerSecond rate{
      std::min(cluster.host_link.d2h.value.value, cluster.host_link.host_one_way.value.value / sharing)};
  Seconds end{0};
  for (const Manager& manager : managers_) {
    if (first) {
      masters(manager.moves, Moves::out);
      continue;
    }
    for (std::size_t i = manager.moves.begin; i < manager.moves.end; ++i) {
      end += master_bytes(i) / rate;
      trace_.leave(master_[i], end);
    }
  }
}

void StateTrace::prefetch(bool first) {
  trace_.wait_for_copies();
  if (first && !masters_at_init_) return;
  for (Manager& manager : managers_) {
    masters(manager.moves, Moves::in);
    if (!first && !manager.chunks.empty()) fill(manager, 0);
  }
}

/// Every tensor starts at a multiple of 256 bytes.
void StateTrace::fill(Manager& manager, std::size_t chunk) {
  const Precision& precision = rank_.job->precision;
  Bytes needed{0};
  for (std::size_t i = manager.chunks[chunk].begin; i < manager.chunks[chunk].end; ++i)
    for (const Dtype moment : {precision.exp_avg, precision.exp_avg_sq})
      needed += Bytes{round_up(bytes(i, size_of(moment)).value, 256)};
  TraceTensor& slot = manager.slots[chunk % 2];
  Bytes& size = manager.slot_bytes[chunk % 2];
  if (needed <= size) return;
  trace_.term(MemoryTerm::moments);
  const TraceTensor larger = trace_.allocate(needed);
  trace_.release(slot);
  slot = larger;
  size = needed;
}

/// In the first step a chunk's moments appear as tensors, which leave while the host waits.
void StateTrace::step_windows(bool first) {
  for (Manager& manager : managers_) {
    adam(manager.stays, first);
    for (std::size_t k = 0; k < manager.chunks.size(); ++k) {
      if (!first && k + 1 < manager.chunks.size()) fill(manager, k + 1);
      adam(manager.chunks[k], first);
      if (first) moments(manager.chunks[k], Moves::out);
    }
    release_slots(manager);
  }
}

void StateTrace::release_slots(Manager& manager) {
  for (TraceTensor& slot : manager.slots) trace_.release(std::exchange(slot, TraceTensor{}));
  manager.slot_bytes[0] = manager.slot_bytes[1] = Bytes{0};
}

}  // namespace ebb
