#include "planner/slot_ops.hpp"

#include "planner/device_state.hpp"
#include "planner/life_parts.hpp"
#include "planner/optimizer_traffic.hpp"

namespace ebb {

OpId slot_copy(PlanBuilder& plan, const RankModel& rank, OpKind direction, Phase phase, std::uint8_t states,
               std::uint32_t chunk, ElementRange range, BufferId buffer, OpId after) {
  return plan.add({.kind = direction,
                   .phase = phase,
                   .states = states,
                   .stream = direction == OpKind::copy_h2d ? kH2d : kD2h,
                   .chunk = chunk,
                   .buffer = buffer,
                   .bytes = bytes_of(range.numel(), state_bytes_per_element(rank.job->precision, states)),
                   .range = range},
                  {after});
}

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

OpId fill_slot(PlanBuilder& plan, const RankModel& rank, Phase phase, std::uint32_t chunk, ElementRange range,
               BufferId buffer, OpId free) {
  const Precision& precision = rank.job->precision;
  if (moments_exist(plan.part()))
    return slot_copy(plan, rank, OpKind::copy_h2d, phase, kAllState, chunk, range, buffer, free);
  OpId in = free;
  if (masters_exist(plan.part(), precision)) {
    in = slot_copy(plan, rank, OpKind::copy_h2d, phase, kMaster, chunk, range, buffer, free);
  } else if (precision.master_bytes() > 0) {
    make_masters(plan, precision, phase, chunk, range, 1, precision.master_bytes(), buffer, {free});
  }
  zero_moments(plan, precision, phase, chunk, range, 1, buffer, {free});
  return in;
}

}  // namespace ebb
