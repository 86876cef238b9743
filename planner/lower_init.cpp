// init: the optimizer is built. Parameters, gradients and what always stays are there; master weights come, made from
// the parameters: in the buffer where they stay on the device, else one shard (or slot) after another through a small
// window, from which they go to the host. So nothing of the state is ever on the device that a step would not bring
// there. Masters that the optimizer makes itself come in its first step, and so do all moments. Where weights are FP8,
// the host makes masters of the initial values that it keeps in the model's type (Megatron-LM,
// preserve_high_precision_init_val), and the weights are quantised from them as in every step.
// Source: Megatron-LM pull request 6544 (masters built in pinned host buffers when chunked; on the device and then
// offloaded otherwise), dev #6244 (windowed), hybrid_optimizer.py (cpu-adam).
#include <algorithm>

#include "planner/checkpoint_staging.hpp"
#include "planner/life_parts.hpp"
#include "planner/quantization.hpp"
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

/// FP8 parameters have lost what masters need: the host makes them of the initial values that it keeps.
void masters_of_initial_values(PlanBuilder& plan, const RankModel& rank, const StateHomes& homes) {
  CheckpointStaging staging(plan, rank, Phase::init, homes.precision.master_bytes());
  for (const DeviceHome& home : homes.device) {
    if (home.states != kMaster) continue;
    const OpId room = plan.allocate(home.buffer, Phase::init, kNoChunk, home.part.tensors());
    const OpId in = staging.make_masters(home.part.range, home.buffer, room);
    // What quantises them is on the compute stream.
    plan.add({.kind = OpKind::host_wait, .phase = Phase::init, .stream = kHost}, {in});
  }
  for (const HostHome& home : homes.host) {
    if ((home.states & kMaster) == 0) continue;
    plan.add({.kind = OpKind::host_work,
              .phase = Phase::init,
              .work = Work::make_masters,
              .states = kMaster,
              .stream = kHost,
              .bytes = bytes_of(home.range.numel(), homes.master_size),
              .range = home.range});
  }
}

}  // namespace

void lower_init(PlanBuilder& plan, const RankModel& rank, const Candidate& candidate) {
  const StateHomes homes = state_homes(plan, rank, candidate);
  StepFrame frame(plan, rank, homes.frame);
  if (quantizes_explicitly(homes.precision)) {
    masters_of_initial_values(plan, rank, homes);
    quantize_homes(plan, rank, candidate, Phase::init);
    frame.gather_all(Phase::init);
  } else if (!homes.precision.optimizer_holds_masters() && homes.master_size > 0) {
    masters_on_device(plan, homes);
    masters_to_host(plan, homes);
  }
  plan.add({.kind = OpKind::host_wait, .phase = Phase::init, .stream = kHost},
           {plan.last_on(kComputeStream), plan.last_on(kComm)});
}

}  // namespace ebb
