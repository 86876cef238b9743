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
#include "planner/slot_ops.hpp"
#include "planner/slot_quantizer.hpp"
#include "planner/step_frame.hpp"

namespace ebb {

namespace {

struct Slot {
  BufferId buffer;
  OpId free;  // the last copy out of it
};

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
    const OpId in = fill_slot(plan, rank, Phase::step, k, range, slot.buffer, slot.free);
    const OpId stepped = slot_adam(plan, rank, k, chunks[k], slot.buffer, in);
    const OpId measured = quantizer.measure(k, stepped);
    slot.free = slot_copy(plan, rank, OpKind::copy_d2h, Phase::step, kAllState, k, range, slot.buffer, measured);
  }
  plan.add({.kind = OpKind::host_wait, .phase = Phase::step, .stream = kHost}, {plan.last_on(kD2h)});
  for (const Slot& slot : ring) plan.release(slot.buffer, Phase::step);
  quantizer.quantize();
  frame.close();
}

}  // namespace ebb
