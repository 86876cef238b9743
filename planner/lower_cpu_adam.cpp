// cpu-adam: `--optimizer-cpu-offload`. Gradients go to the host, Adam runs there, parameters come back; with a
// fraction below 1 the remaining shards keep their state on the device and step there meanwhile.
// Source: Megatron-LM hybrid_optimizer.py (without --overlap-cpu-optimizer-d2h-h2d). Both directions carry 4 bytes an
// element whatever the types: torch converts an asynchronous copy on the device (ATen copy_kernel_cuda).
#include <algorithm>

#include "models/memory/torch_allocator.hpp"
#include "planner/device_state.hpp"
#include "planner/life_parts.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/step_frame.hpp"

namespace ebb {

namespace {

constexpr std::int64_t kWireBytes = 4;

/// Conversions between wire and storage type go through one fp32 tensor at a time.
Bytes staging_bytes(const Part& part) {
  Numel largest{0};
  for (const Shard& shard : part.shards) largest = std::max(largest, shard.numel);
  return memory::allocated_bytes(bytes_of(largest, kWireBytes));
}

/// One shard that moves, and where it lies in the rank's elements.
Part tensor_of(const Part& part, std::size_t index, std::int64_t begin) {
  return {part.shards.subspan(index, 1), {begin, begin + part.shards[index].numel.value}};
}

/// Between the type it is stored in and the wire's, through `staging`.
OpId convert(PlanBuilder& plan, const Part& part, StateBits what, Dtype stored, BufferId staging, OpId dep,
             Phase phase = Phase::step) {
  return plan.add({.kind = OpKind::kernel,
                   .phase = phase,
                   .work = Work::cast,
                   .states = what,
                   .stream = kComputeStream,
                   .buffer = staging,
                   .bytes = bytes_of(part.range.numel(), kWireBytes + size_of(stored)),
                   .range = part.range},
                  {dep});
}

OpId wire(PlanBuilder& plan, OpKind direction, const Part& part, StateBits what, BufferId staging, OpId dep,
          Phase phase = Phase::step) {
  return plan.add({.kind = direction,
                   .phase = phase,
                   .states = what,
                   .stream = direction == OpKind::copy_h2d ? kH2d : kD2h,
                   .calls = part.tensors(),
                   .buffer = staging,
                   .bytes = bytes_of(part.range.numel(), kWireBytes),
                   .range = part.range},
                  {dep});
}

/// Gradients to the host: as they are where they are fp32, else tensor by tensor through `staging`.
OpId grads_out(PlanBuilder& plan, const RankModel& rank, const Part& moves, BufferId staging, OpId room) {
  const Dtype stored = rank.job->precision.grads;
  if (stored == Dtype::fp32) return wire(plan, OpKind::copy_d2h, moves, kGrads, BufferId::none(), room);
  OpId out = room;
  std::int64_t begin = moves.range.begin;
  for (std::size_t i = 0; i < moves.shards.size(); ++i) {
    if (moves.shards[i].numel.value == 0) continue;
    const Part tensor = tensor_of(moves, i, begin);
    out = wire(plan, OpKind::copy_d2h, tensor, kGrads, staging, convert(plan, tensor, kGrads, stored, staging, out));
    begin = tensor.range.end;
  }
  return out;
}

/// Stepped masters to the device and into the parameters, tensor by tensor through `staging`.
void params_in(PlanBuilder& plan, const RankModel& rank, const Part& moves, BufferId staging, OpId room, Phase phase) {
  OpId free = room;
  std::int64_t begin = moves.range.begin;
  for (std::size_t i = 0; i < moves.shards.size(); ++i) {
    if (moves.shards[i].numel.value == 0) continue;
    const Part tensor = tensor_of(moves, i, begin);
    const OpId in = wire(plan, OpKind::copy_h2d, tensor, kParams, staging, free, phase);
    free = convert(plan, tensor, kParams, rank.job->precision.params, staging, in, phase);
    begin = tensor.range.end;
  }
}

}  // namespace

FrameOptions hybrid_frame(const RankModel& rank, const Part& stays) {
  const std::int64_t size = size_of(rank.job->precision.grads);
  if (rank.job->precision.grads == Dtype::fp32) return {};
  return {.grad_copies = allocated_tensors(stays.shards, 4), .copied = stays.range, .grad_size = size};
}

void params_from_host(PlanBuilder& plan, const RankModel& rank, const Part& moves, Phase phase) {
  const BufferId staging = plan.buffer("staging", Memory::device, staging_bytes(moves), false, phase);
  plan.role(staging, Role::staging);
  params_in(plan, rank, moves, staging, plan.allocate(staging, phase), phase);
  plan.release(staging, phase);
}

void lower_cpu_adam(PlanBuilder& plan, const RankModel& rank, double fraction) {
  const Job& job = *rank.job;
  const Precision precision = precision_of(job, Policy::cpu_adam);
  const AdamKernel kernel = job.adam_of(Policy::cpu_adam);
  const auto [moves, stays] = hybrid_parts(rank, fraction);
  const DeviceState state = device_state(plan, precision, stays, kAllState);
  StepFrame frame(plan, rank, hybrid_frame(rank, stays));
  frame.zero_grads();
  frame.forward_backward();
  frame.finalize();
  if (is_skip(plan.part())) return;

  const BufferId staging = plan.buffer("staging", Memory::device, staging_bytes(moves), false, Phase::step);
  plan.role(staging, Role::staging);
  const OpId out = grads_out(plan, rank, moves, staging, plan.allocate(staging, Phase::step));
  if (stays.tensors() > 0) step_on_device(plan, rank, precision, kernel, stays, state);
  plan.add({.kind = OpKind::host_wait, .phase = Phase::step, .stream = kHost}, {out});
  plan.add({.kind = OpKind::host_work,
            .phase = Phase::step,
            .work = Work::cpu_adam,
            .states = kAllState | kGrads | kParams,
            .stream = kHost,
            .bytes = bytes_of(moves.range.numel(), adam_bytes_per_element({}, false)),
            .range = moves.range});
  params_in(plan, rank, moves, staging, OpId::none(), Phase::step);
  plan.release(staging, Phase::step);
  frame.close();
}

}  // namespace ebb
