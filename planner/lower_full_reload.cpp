// full-reload: `--offload-optimizer-states` with chunk-numel 0. All state leaves when a step starts, while the host
// waits, and returns during gradient finalization; then Adam steps everything at once.
// Source: Megatron-LM pull request 6544, optimizer_state_offloader.py: offload, release_gpu_memory (which synchronises
// the copies in flight, so that they overlap nothing but zeroing gradients), reload, sync_before_step.
#include <bit>

#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/step_frame.hpp"

namespace ebb {

void lower_full_reload(PlanBuilder& plan, const RankModel& rank) {
  const Job& job = *rank.job;
  const AdamKernel kernel = job.adam_of(Policy::full_reload);
  const Part all = whole(rank);
  const BufferId state = plan.buffer("optimizer state", Memory::device,
                                     allocated_state(job.precision, rank.shards, kAllState), true, Phase::forward);
  plan.state(state, held_states(job.precision), all.range);
  StepFrame frame(plan, rank, standard_frame(rank));

  const OpId out = copy_state(plan, rank, OpKind::copy_d2h, Phase::forward, kAllState, all, state, {});
  frame.zero_grads();
  plan.add({.kind = OpKind::host_wait, .phase = Phase::forward, .stream = kHost}, {out});
  plan.release(state, Phase::forward);
  frame.forward_backward();

  const OpId room =
      plan.allocate(state, Phase::finalize, kNoChunk,
                    static_cast<std::uint32_t>(std::popcount(held_states(job.precision))) * all.tensors());
  const OpId in = copy_state(plan, rank, OpKind::copy_h2d, Phase::finalize, kAllState, all, state, {room});
  frame.finalize(in, state);
  step_on_device(plan, rank, job.precision, kernel, all, state);
  quantize_params(plan, rank);
  frame.close();
}

}  // namespace ebb
