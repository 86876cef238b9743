// full-reload: `--offload-optimizer-states` with chunk-numel 0. All state leaves when a step starts, while the host
// waits, and returns during gradient finalization; then Adam steps everything at once. Moments move before masters.
// Source: Megatron-LM pull request 6544, optimizer_state_offloader.py: offload, release_gpu_memory (which synchronises
// the copies in flight, so that they overlap nothing but zeroing gradients), reload, sync_before_step.
#include <bit>
#include <vector>

#include "planner/device_state.hpp"
#include "planner/life_parts.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/step_frame.hpp"

namespace ebb {

namespace {

struct Moved {
  std::uint8_t states = 0;
  BufferId buffer;
};

/// What there is to move when the step begins, in the offloader's order.
std::vector<Moved> moved_state(const PlanBuilder& plan, const Precision& precision, const DeviceState& state) {
  std::vector<Moved> moved;
  if (moments_exist(plan.part())) moved.push_back({kMoments, state.moments});
  if (masters_exist(plan.part(), precision)) moved.push_back({kMaster, state.masters});
  return moved;
}

}  // namespace

void lower_full_reload(PlanBuilder& plan, const RankModel& rank) {
  const Job& job = *rank.job;
  const AdamKernel kernel = job.adam_of(Policy::full_reload);
  const Part all = whole(rank);
  const DeviceState state = device_state(plan, job.precision, all, kAllState, {}, Phase::forward);
  const std::vector<Moved> moved = moved_state(plan, job.precision, state);
  StepFrame frame(plan, rank, standard_frame(rank));

  OpId out;
  for (const Moved& part : moved)
    out = copy_state(plan, rank, OpKind::copy_d2h, Phase::forward, part.states, all, part.buffer, {});
  frame.zero_grads();
  if (out.valid()) plan.add({.kind = OpKind::host_wait, .phase = Phase::forward, .stream = kHost}, {out});
  for (const Moved& part : moved) plan.release(part.buffer, Phase::forward);
  frame.forward_backward();

  OpId in;
  for (const Moved& part : moved) {
    const auto tensors = static_cast<std::uint32_t>(std::popcount(part.states)) * all.tensors();
    const OpId room = plan.allocate(part.buffer, Phase::finalize, kNoChunk, tensors);
    in = copy_state(plan, rank, OpKind::copy_h2d, Phase::finalize, part.states, all, part.buffer, {room});
  }
  frame.finalize(in, moved.empty() ? BufferId::none() : moved.back().buffer);
  if (is_skip(plan.part())) return;
  step_on_device(plan, rank, job.precision, kernel, all, state);
  quantize_params(plan, rank);
  frame.close();
}

}  // namespace ebb
