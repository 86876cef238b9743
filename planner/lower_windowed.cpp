// windowed: `--chunked-optimizer-state-offload`. Masters leave at the start of a step, beside forward, and all return
// during gradient finalization; moments pass through two slots while the step runs: chunk k + 1 comes in while chunk k
// is stepped and goes out. With a fraction below 1 the other shards keep their state on the device and step first.
// Source: Megatron-LM dev d48bd6be0a, chunked_optimizer_state_offload.py (#6244). Dense and expert optimizers have a
// manager each; all managers share one stream a direction, and each prefetches its first chunk.
#include <algorithm>
#include <array>
#include <vector>

#include "models/errors.hpp"
#include "models/memory/torch_allocator.hpp"
#include "planner/chunking.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/step_frame.hpp"

namespace ebb {

namespace {

/// What one chained optimizer offloads.
struct Manager {
  Part moves;  // in optimizer order, before what stays
  Part stays;
  std::vector<Part> chunks;  // of `moves`
  BufferId masters;
  BufferId resident;
  std::array<BufferId, 2> slots;
  std::array<OpId, 2> filled;  // the last copy into each slot
  OpId masters_out;
};

/// Moments of a chunk lie in one flat buffer a type, every tensor aligned to 256 bytes.
Bytes window_bytes(const Precision& precision, std::span<const Shard> shards) {
  std::int64_t sum = 0;
  for (const Shard& shard : shards) {
    sum += round_up(bytes_of(shard.numel, size_of(precision.exp_avg)).value, 256);
    sum += round_up(bytes_of(shard.numel, size_of(precision.exp_avg_sq)).value, 256);
  }
  return memory::allocated_bytes({sum});
}

/// A slot grows to the largest chunk that it holds in turn.
Bytes slot_bytes(const Precision& precision, const Manager& manager, std::size_t slot) {
  Bytes largest{0};
  for (std::size_t k = slot; k < manager.chunks.size(); k += 2) {
    largest = std::max(largest, window_bytes(precision, manager.chunks[k].shards));
  }
  return largest;
}

class Windowed {
 public:
  Windowed(PlanBuilder& plan, const RankModel& rank, std::int64_t chunk_size_mb, double fraction);
  void masters_leave();
  /// The last slot it fills; none() when nothing moves.
  BufferId prefetch();
  void step();

 private:
  void split_managers(double fraction);
  void chunk_managers(std::int64_t chunk_size_mb);
  Bytes scratch_bytes() const;
  void chunk_in(Manager& manager, std::size_t k, Phase phase);
  void step_chunks(Manager& manager);

  PlanBuilder& plan_;
  const RankModel& rank_;
  AdamKernel kernel_;
  std::vector<Manager> managers_;
};

Windowed::Windowed(PlanBuilder& plan, const RankModel& rank, std::int64_t chunk_size_mb, double fraction)
    : plan_(plan), rank_(rank), kernel_(rank.job->adam_of(Policy::windowed)) {
  split_managers(fraction);
  chunk_managers(chunk_size_mb);
  const Precision& precision = rank.job->precision;
  for (Manager& manager : managers_) {
    if (manager.moves.tensors() > 0) {
      const Bytes bytes = allocated_state(precision, manager.moves.shards, kMaster);
      manager.masters = plan.buffer("master weights", Memory::device, bytes, true, Phase::forward);
      plan.state(manager.masters, held_states(precision) & kMaster, manager.moves.range);
    }
    if (manager.stays.tensors() > 0) {
      const Bytes bytes = allocated_state(precision, manager.stays.shards, kAllState);
      manager.resident = plan.buffer("resident state", Memory::device, bytes, true);
      plan.state(manager.resident, held_states(precision), manager.stays.range);
    }
  }
}

void Windowed::split_managers(double fraction) {
  const std::span<const Shard> shards(rank_.shards);
  const std::vector<bool> moves = offloaded_by_fraction(shards, fraction, rank_.job->precision.state_bytes());
  std::int64_t begin = 0;
  for (std::size_t first = 0; first < shards.size();) {
    std::size_t cut = first;
    while (cut < shards.size() && shards[cut].optimizer == shards[first].optimizer && moves[cut]) ++cut;
    std::size_t end = cut;
    while (end < shards.size() && shards[end].optimizer == shards[first].optimizer) {
      EBB_ASSERT(!moves[end]);  // what moves comes first in each optimizer
      ++end;
    }
    Manager manager;
    manager.moves = {shards.subspan(first, cut - first), {}};
    manager.stays = {shards.subspan(cut, end - cut), {}};
    manager.moves.range = {begin, begin + owned(manager.moves.shards).value};
    manager.stays.range = {manager.moves.range.end, manager.moves.range.end + owned(manager.stays.shards).value};
    begin = manager.stays.range.end;
    managers_.push_back(std::move(manager));
    first = end;
  }
}

void Windowed::chunk_managers(std::int64_t chunk_size_mb) {
  std::uint32_t number = 0;
  for (Manager& manager : managers_) {
    std::int64_t begin = manager.moves.range.begin;
    const std::int64_t moment_bytes = rank_.job->precision.moment_bytes();
    for (const Chunk& chunk : chunk_by_moments(manager.moves.shards, chunk_size_mb, moment_bytes)) {
      const std::int64_t end = begin + chunk.numel.value;
      manager.chunks.push_back({manager.moves.shards.subspan(chunk.first, chunk.count), {begin, end}, number++});
      begin = end;
    }
  }
}

/// No host wait: the storage comes back when the copy has ended, but counts as free at once.
void Windowed::masters_leave() {
  for (Manager& manager : managers_) {
    if (!manager.masters.valid()) continue;
    manager.masters_out =
        copy_state(plan_, rank_, OpKind::copy_d2h, Phase::forward, kMaster, manager.moves, manager.masters, {});
    plan_.release(manager.masters, Phase::forward, {}, manager.masters_out);
  }
}

void Windowed::chunk_in(Manager& manager, std::size_t k, Phase phase) {
  BufferId& slot = manager.slots[k % 2];
  if (!slot.valid()) {
    slot = plan_.buffer("slot", k % 2, slot_bytes(rank_.job->precision, manager, k % 2), Phase::step);
    plan_.state(slot, kMoments, {});
    plan_.allocate(slot, phase);
  }
  // Waits for everything that already stands on the two streams which may still use the slot.
  manager.filled[k % 2] = copy_state(plan_, rank_, OpKind::copy_h2d, phase, kMoments, manager.chunks[k], slot,
                                     {plan_.last_on(kComputeStream), plan_.last_on(kD2h)});
}

BufferId Windowed::prefetch() {
  BufferId last;
  for (Manager& manager : managers_) {
    if (!manager.masters.valid()) continue;
    const OpId room = plan_.allocate(manager.masters, Phase::finalize, kNoChunk, manager.moves.tensors());
    copy_state(plan_, rank_, OpKind::copy_h2d, Phase::finalize, kMaster, manager.moves, manager.masters,
               {room, manager.masters_out});
    chunk_in(manager, 0, Phase::finalize);
    last = manager.slots[0];
  }
  return last;
}

Bytes Windowed::scratch_bytes() const {
  Bytes largest{0};
  for (const Manager& manager : managers_) {
    largest = std::max(largest, adam_temporaries(rank_.job->precision, kernel_, manager.stays.shards));
    for (const Part& chunk : manager.chunks) {
      largest = std::max(largest, adam_temporaries(rank_.job->precision, kernel_, chunk.shards));
    }
  }
  return largest;
}

void Windowed::step_chunks(Manager& manager) {
  for (std::size_t k = 0; k < manager.chunks.size(); ++k) {
    const Part& chunk = manager.chunks[k];
    host_call(plan_, rank_, chunk.chunk, 0);
    const OpId in = manager.filled[k % 2];
    if (k + 1 < manager.chunks.size()) chunk_in(manager, k + 1, Phase::step);
    const OpId stepped = adam(plan_, rank_.job->precision, kernel_, chunk, manager.slots[k % 2], {in});
    copy_state(plan_, rank_, OpKind::copy_d2h, Phase::step, kMoments, chunk, manager.slots[k % 2], {stepped});
  }
}

void Windowed::step() {
  const Precision& precision = rank_.job->precision;
  AdamScratch scratch(plan_, scratch_bytes());
  for (Manager& manager : managers_) {
    if (manager.stays.tensors() > 0) {
      host_call(plan_, rank_, kNoChunk, 1);
      adam(plan_, precision, kernel_, manager.stays, manager.resident, {});
    }
    step_chunks(manager);
    const auto cast = [&](const Part& part, BufferId buffer) {
      if (part.tensors() > 0) cast_to_params(plan_, rank_, precision, part, buffer, OpId::none());
    };
    cast(manager.moves, manager.masters);
    cast(manager.stays, manager.resident);
    for (const BufferId slot : manager.slots) {
      if (slot.valid()) plan_.release(slot, Phase::step, {}, plan_.last_on(kD2h));
    }
  }
  scratch.release();
  quantize_params(plan_, rank_);
}

}  // namespace

void lower_windowed(PlanBuilder& plan, const RankModel& rank, std::int64_t chunk_size_mb, double fraction) {
  StepFrame frame(plan, rank, standard_frame(rank));
  Windowed windowed(plan, rank, chunk_size_mb, fraction);
  windowed.masters_leave();
  frame.zero_grads();
  frame.forward_backward();
  const BufferId last = windowed.prefetch();
  frame.finalize(last.valid() ? plan.last_on(kH2d) : OpId::none(), last);
  windowed.step();
  frame.close();
}

}  // namespace ebb
