// pipelined: Ebb's own runtime. D slots of exactly C elements walk over the rank's owned elements, which lie packed in
// one pinned region in optimizer order, so that pieces of shards may share a slot and each chunk is one copy each way.
// A copy in waits for nothing but its slot; Adam writes the model parameters in the same pass (adam_bytes_per_element);
// the host waits once, at the end. Both directions of the link are busy all the time from three slots on.
// Gathered FP8 weights are quantised in a second pass (slot_quantizer.hpp). Not here: moving transfers out of the step.
#include <algorithm>
#include <vector>

#include "models/errors.hpp"
#include "models/memory/torch_allocator.hpp"
#include "planner/device_state.hpp"
#include "planner/life_parts.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/slot_quantizer.hpp"
#include "planner/step_frame.hpp"

namespace ebb {

namespace {

struct Slot {
  BufferId buffer;
  OpId free;  // the last copy out of it
};

/// One copy of `states` of `range` between slot and packed host state.
OpId slot_copy(PlanBuilder& plan, const RankModel& rank, OpKind direction, std::uint8_t states, std::uint32_t chunk,
               ElementRange range, BufferId buffer, OpId after) {
  return plan.add({.kind = direction,
                   .phase = Phase::step,
                   .states = states,
                   .stream = direction == OpKind::copy_h2d ? kH2d : kD2h,
                   .chunk = chunk,
                   .buffer = buffer,
                   .bytes = bytes_of(range.numel(), state_bytes_per_element(rank.job->precision, states)),
                   .range = range},
                  {after});
}

/// Quantised parameters are written in a pass of their own.
OpId slot_adam(PlanBuilder& plan, const RankModel& rank, std::uint32_t chunk, const OwnedRun& run, BufferId buffer,
               OpId in) {
  const std::uint8_t params = run.quantized ? 0 : kParams;
  return plan.add({.kind = OpKind::kernel,
                   .phase = Phase::step,
                   .work = Work::adam,
                   .states = static_cast<std::uint8_t>(kAllState | kGrads | params),
                   .stream = kComputeStream,
                   .chunk = chunk,
                   .buffer = buffer,
                   .bytes = bytes_of(run.range.numel(), adam_bytes_per_element(rank.job->precision, !run.quantized)),
                   .range = run.range},
                  {in});
}

/// State of a chunk into its slot: from the host, or made where it does not exist yet. The last op.
OpId fill_slot(PlanBuilder& plan, const RankModel& rank, std::uint32_t chunk, ElementRange range, BufferId buffer,
               OpId free) {
  const Precision& precision = rank.job->precision;
  if (moments_exist(plan.part())) return slot_copy(plan, rank, OpKind::copy_h2d, kAllState, chunk, range, buffer, free);
  OpId in = free;
  if (masters_exist(plan.part(), precision)) {
    in = slot_copy(plan, rank, OpKind::copy_h2d, kMaster, chunk, range, buffer, free);
  } else if (precision.master_bytes() > 0) {
    make_masters(plan, precision, Phase::step, chunk, range, 1, precision.master_bytes(), buffer, {free});
  }
  zero_moments(plan, precision, Phase::step, chunk, range, 1, buffer, {free});
  return in;
}

}  // namespace

void lower_pipelined(PlanBuilder& plan, const RankModel& rank, Numel slot_numel, int slots) {
  EBB_ASSERT(slot_numel.value > 0 && slots > 0);
  const Job& job = *rank.job;
  const std::vector<OwnedRun> chunks = slot_chunks(rank, job.precision, slot_numel);
  StepFrame frame(plan, rank, standard_frame(rank));
  frame.zero_grads();
  frame.forward_backward();
  frame.finalize();
  if (is_skip(plan.part())) return;

  SlotQuantizer quantizer(plan, rank, slot_numel, slots, Phase::step);
  std::vector<Slot> ring(std::min(static_cast<std::size_t>(slots), chunks.size()));
  const Bytes slot_bytes = memory::allocated_bytes(bytes_of(slot_numel, job.precision.state_bytes()));
  for (std::size_t s = 0; s < ring.size(); ++s) {
    ring[s].buffer = plan.buffer("slot", s, slot_bytes, Phase::step);
    plan.state(ring[s].buffer, held_states(job.precision), {}, true);
    ring[s].free = plan.allocate(ring[s].buffer, Phase::step);
  }
  for (std::uint32_t k = 0; k < chunks.size(); ++k) {
    Slot& slot = ring[k % ring.size()];
    const ElementRange range = chunks[k].range;
    const OpId in = fill_slot(plan, rank, k, range, slot.buffer, slot.free);
    const OpId stepped = slot_adam(plan, rank, k, chunks[k], slot.buffer, in);
    const OpId measured = quantizer.measure(k, stepped);
    slot.free = slot_copy(plan, rank, OpKind::copy_d2h, kAllState, k, range, slot.buffer, measured);
  }
  plan.add({.kind = OpKind::host_wait, .phase = Phase::step, .stream = kHost}, {plan.last_on(kD2h)});
  for (const Slot& slot : ring) plan.release(slot.buffer, Phase::step);
  quantizer.quantize();
  frame.close();
}

}  // namespace ebb
