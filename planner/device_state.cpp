#include "planner/device_state.hpp"

#include "planner/life_parts.hpp"
#include "planner/optimizer_traffic.hpp"

namespace ebb {

DeviceState device_state(PlanBuilder& plan, const Precision& precision, const Part& part, std::uint8_t states,
                         StateNames names, std::optional<Phase> ends_with) {
  DeviceState state;
  states &= held_states(precision);
  if (part.tensors() == 0) return state;
  if (states & kMoments) {
    state.moments = plan.buffer(names.moments, Memory::device, allocated_state(precision, part.shards, kMoments),
                                moments_exist(plan.part()), ends_with);
    plan.state(state.moments, kMoments, part.range);
  }
  if (states & kMaster) {
    state.masters = plan.buffer(names.masters, Memory::device, allocated_state(precision, part.shards, kMaster),
                                masters_exist(plan.part(), precision), ends_with);
    plan.state(state.masters, kMaster, part.range);
  }
  return state;
}

void come_into_being(PlanBuilder& plan, const Precision& precision, const Part& part, const DeviceState& state) {
  if (!is_first_step(plan.part())) return;
  if (state.moments.valid()) {
    const OpId room = plan.allocate(state.moments, Phase::step, kNoChunk, 2 * part.tensors());
    zero_moments(plan, precision, Phase::step, kNoChunk, part.range, 2 * part.tensors(), state.moments, {room});
  }
  if (state.masters.valid() && !masters_exist(plan.part(), precision)) {
    const OpId room = plan.allocate(state.masters, Phase::step, kNoChunk, part.tensors());
    make_masters(plan, precision, Phase::step, kNoChunk, part.range, part.tensors(), precision.master_bytes(),
                 state.masters, {room});
  }
}

OpId zero_moments(PlanBuilder& plan, const Precision& precision, Phase phase, std::uint32_t chunk, ElementRange range,
                  std::uint32_t calls, BufferId buffer, std::initializer_list<OpId> deps) {
  return plan.add({.kind = OpKind::kernel,
                   .phase = phase,
                   .work = Work::zero_state,
                   .states = kMoments,
                   .stream = kComputeStream,
                   .chunk = chunk,
                   .calls = calls,
                   .buffer = buffer,
                   .bytes = bytes_of(range.numel(), precision.moment_bytes()),
                   .range = range},
                  deps);
}

OpId make_masters(PlanBuilder& plan, const Precision& precision, Phase phase, std::uint32_t chunk, ElementRange range,
                  std::uint32_t calls, std::int64_t master_size, BufferId buffer, std::initializer_list<OpId> deps) {
  return plan.add({.kind = OpKind::kernel,
                   .phase = phase,
                   .work = Work::make_masters,
                   .states = kMaster | kParams,
                   .stream = kComputeStream,
                   .chunk = chunk,
                   .calls = calls,
                   .buffer = buffer,
                   .bytes = bytes_of(range.numel(), size_of(precision.params) + master_size),
                   .range = range},
                  deps);
}

}  // namespace ebb
