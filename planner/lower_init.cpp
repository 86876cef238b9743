// init: the optimizer is built. Parameters, gradients and what always stays are there; master weights come, made from
// the parameters: in the buffer where they stay on the device, else one shard (or slot) after another through a small
// window, from which they go to the host. So nothing of the state is ever on the device that a step would not bring
// there. Masters that the optimizer makes itself come in its first step, and so do all moments.
// Source: Megatron-LM pull request 6544 (masters built in pinned host buffers when chunked; on the device and then
// offloaded otherwise), dev #6244 (windowed), hybrid_optimizer.py (cpu-adam).
#include <algorithm>

#include "planner/life_parts.hpp"
#include "planner/state_homes.hpp"

namespace ebb {

namespace {

void masters_on_device(PlanBuilder& plan, const StateHomes& homes) {
  for (const DeviceHome& home : homes.device) {
    if (home.states != kMaster) continue;
    const OpId room = plan.allocate(home.buffer, Phase::init, kNoChunk, home.part.tensors());
    make_masters(plan, homes.precision, Phase::init, kNoChunk, home.part.range, home.part.tensors(),
                 homes.precision.master_bytes(), home.buffer, {room});
  }
}

void masters_to_host(PlanBuilder& plan, const StateHomes& homes) {
  for (std::uint32_t k = 0; k < homes.builders.size(); ++k) {
    const StateWindow& window = homes.builders[k];
    const BufferId buffer = plan.buffer("new masters", k, window.masters, Phase::init);
    plan.state(buffer, kMaster, window.range, homes.packed);
    const OpId room = plan.allocate(buffer, Phase::init, k);
    const OpId made = make_masters(plan, homes.precision, Phase::init, k, window.range, window.tensors,
                                   homes.master_size, buffer, {room});
    const OpId out = plan.add({.kind = OpKind::copy_d2h,
                               .phase = Phase::init,
                               .states = kMaster,
                               .stream = kD2h,
                               .chunk = k,
                               .calls = window.tensors,
                               .buffer = buffer,
                               .bytes = bytes_of(window.range.numel(), homes.master_size),
                               .range = window.range},
                              {made});
    plan.add({.kind = OpKind::host_wait, .phase = Phase::init, .stream = kHost, .chunk = k}, {out});
    plan.release(buffer, Phase::init, {}, OpId::none(), k);
  }
}

}  // namespace

void lower_init(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate) {
  const StateHomes homes = state_homes(plan, rank, candidate);
  StepFrame frame(plan, rank, homes.frame);
  if (!homes.precision.optimizer_holds_masters() && homes.master_size > 0) {
    masters_on_device(plan, homes);
    masters_to_host(plan, homes);
  }
  plan.add({.kind = OpKind::host_wait, .phase = Phase::init, .stream = kHost}, {plan.last_on(kComputeStream)});
}

}  // namespace ebb
