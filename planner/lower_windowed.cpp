// windowed: `--chunked-optimizer-state-offload`. Masters leave at the start of a step, beside forward, and all return
// during gradient finalization; moments pass through two slots while the step runs: chunk k + 1 comes in while chunk k
// is stepped and goes out. With a fraction below 1 the other shards keep their state on the device and step first.
// Source: Megatron-LM dev d48bd6be0a, chunked_optimizer_state_offload.py (#6244). Dense and expert optimizers have a
// manager each; all managers share one stream a direction, and each prefetches its first chunk.
#include <algorithm>
#include <array>
#include <vector>

#include "planner/life_parts.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/step_frame.hpp"
#include "planner/windowed_parts.hpp"

namespace ebb {

namespace {

/// What one chained optimizer offloads, and where.
struct Manager {
  WindowedPart part;
  std::size_t number = 0;
  DeviceState moves;  // masters alone
  DeviceState stays;
  std::array<BufferId, 2> slots;
  std::array<OpId, 2> filled;  // the last op that filled each slot
  OpId masters_out;
};

/// A slot grows to the largest chunk that it holds in turn.
Bytes slot_bytes(const Precision& precision, const Manager& manager, std::size_t slot) {
  Bytes largest{0};
  for (std::size_t k = slot; k < manager.part.chunks.size(); k += 2) {
    largest = std::max(largest, moment_window_bytes(precision, manager.part.chunks[k].shards));
  }
  return largest;
}

class Windowed {
 public:
  Windowed(PlanBuilder& plan, const RankModel& rank, std::int64_t chunk_size_mb, double fraction);
  void masters_leave();
  /// The last slot it fills; none() when nothing moves.
  BufferId prefetch();
  /// Drops what prefetch() has filled; masters stay.
  void skip();
  void step();

 private:
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
  for (WindowedPart& part : windowed_parts(rank, chunk_size_mb, fraction)) {
    Manager manager;
    manager.part = std::move(part);
    manager.number = managers_.size();
    manager.moves = moved_masters(plan, rank.job->precision, manager.part, manager.number);
    manager.stays = kept_state(plan, rank.job->precision, manager.part, manager.number);
    managers_.push_back(std::move(manager));
  }
}

/// No host wait: the storage comes back when the copy has ended, but counts as free at once.
void Windowed::masters_leave() {
  if (!masters_exist(plan_.part(), rank_.job->precision)) return;
  for (Manager& manager : managers_) {
    const BufferId masters = manager.moves.masters;
    if (!masters.valid()) continue;
    manager.masters_out =
        copy_state(plan_, rank_, OpKind::copy_d2h, Phase::forward, kMaster, manager.part.moves, masters, {});
    plan_.release(masters, Phase::forward, {}, manager.masters_out);
  }
}

void Windowed::chunk_in(Manager& manager, std::size_t k, Phase phase) {
  BufferId& slot = manager.slots[k % 2];
  if (!slot.valid()) {
    slot =
        plan_.buffer("slot", 2 * manager.number + k % 2, slot_bytes(rank_.job->precision, manager, k % 2), Phase::step);
    plan_.state(slot, kMoments, {});
    plan_.allocate(slot, phase);
  }
  const Part& chunk = manager.part.chunks[k];
  if (is_first_step(plan_.part())) {
    manager.filled[k % 2] = zero_moments(plan_, rank_.job->precision, phase, chunk.chunk, chunk.range,
                                         2 * chunk.tensors(), slot, {plan_.last_on(kD2h)});
    return;
  }
  // Waits for everything that already stands on the two streams which may still use the slot.
  manager.filled[k % 2] = copy_state(plan_, rank_, OpKind::copy_h2d, phase, kMoments, chunk, slot,
                                     {plan_.last_on(kComputeStream), plan_.last_on(kD2h)});
}

BufferId Windowed::prefetch() {
  const bool masters = masters_exist(plan_.part(), rank_.job->precision);
  BufferId last;
  for (Manager& manager : managers_) {
    const Part& moves = manager.part.moves;
    if (moves.tensors() == 0) continue;
    if (masters) {
      const OpId room = plan_.allocate(manager.moves.masters, Phase::finalize, kNoChunk, moves.tensors());
      last = manager.moves.masters;
      copy_state(plan_, rank_, OpKind::copy_h2d, Phase::finalize, kMaster, moves, last, {room, manager.masters_out});
    }
    if (!moments_exist(plan_.part())) continue;
    chunk_in(manager, 0, Phase::finalize);
    last = manager.slots[0];
  }
  return last;
}

void Windowed::skip() {
  for (const Manager& manager : managers_)
    if (manager.slots[0].valid()) plan_.release(manager.slots[0], Phase::skip);
}

Bytes Windowed::scratch_bytes() const {
  Bytes largest{0};
  for (const Manager& manager : managers_) {
    largest = std::max(largest, adam_temporaries(rank_.job->precision, kernel_, manager.part.stays.shards));
    for (const Part& chunk : manager.part.chunks) {
      largest = std::max(largest, adam_temporaries(rank_.job->precision, kernel_, chunk.shards));
    }
  }
  return largest;
}

void Windowed::step_chunks(Manager& manager) {
  const std::vector<Part>& chunks = manager.part.chunks;
  const bool first = is_first_step(plan_.part());
  for (std::size_t k = 0; k < chunks.size(); ++k) {
    const Part& chunk = chunks[k];
    host_call(plan_, rank_, chunk.chunk, 0);
    if (first) chunk_in(manager, k, Phase::step);
    const OpId in = manager.filled[k % 2];
    if (!first && k + 1 < chunks.size()) chunk_in(manager, k + 1, Phase::step);
    const OpId stepped = adam(plan_, rank_.job->precision, kernel_, chunk, manager.slots[k % 2], {in});
    const OpId out =
        copy_state(plan_, rank_, OpKind::copy_d2h, Phase::step, kMoments, chunk, manager.slots[k % 2], {stepped});
    // The first step pins the moments' memory chunk by chunk, and waits for each (first_step.hpp).
    if (first)
      plan_.add({.kind = OpKind::host_wait, .phase = Phase::step, .stream = kHost, .chunk = chunk.chunk}, {out});
  }
}

void Windowed::step() {
  const Precision& precision = rank_.job->precision;
  AdamScratch scratch(plan_, scratch_bytes());
  for (Manager& manager : managers_) {
    const WindowedPart& part = manager.part;
    if (part.stays.tensors() > 0) {
      host_call(plan_, rank_, kNoChunk, 1);
      come_into_being(plan_, precision, part.stays, manager.stays);
      adam(plan_, precision, kernel_, part.stays, manager.stays.moments, {});
    }
    come_into_being(plan_, precision, part.moves, manager.moves);
    step_chunks(manager);
    const auto cast = [&](const Part& of, BufferId masters) {
      if (of.tensors() > 0) cast_to_params(plan_, rank_, precision, of, masters, OpId::none());
    };
    cast(part.moves, manager.moves.masters);
    cast(part.stays, manager.stays.masters);
    for (const BufferId slot : manager.slots) {
      if (slot.valid()) plan_.release(slot, Phase::step, {}, plan_.last_on(kD2h));
    }
  }
  scratch.release();
  std::vector<std::int64_t> cuts;
  for (const Manager& manager : managers_) cuts.push_back(manager.part.moves.range.end);
  quantize_params(plan_, rank_, Phase::step, cuts);
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
  if (is_skip(plan.part())) return windowed.skip();
  windowed.step();
  frame.close();
}

}  // namespace ebb
