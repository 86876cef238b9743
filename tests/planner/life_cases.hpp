// All parts of a job's life under one candidate, and what they hold on the device.
#pragma once

#include <array>
#include <stdexcept>
#include <vector>

#include "models/live_meter.hpp"
#include "planner/life_sequence.hpp"
#include "planner/lower.hpp"

namespace ebb::test {

inline constexpr std::array kAllParts = {LifePart::step,        LifePart::init,   LifePart::load,
                                         LifePart::load_params, LifePart::reload, LifePart::first_step,
                                         LifePart::first_skip,  LifePart::skip,   LifePart::save};

inline std::vector<Plan> life_of_rank(const RankModel& rank, const Candidate& candidate) {
  std::vector<Plan> plans;
  for (const LifePart part : kAllParts) plans.push_back(lower_part(rank, candidate, part));
  return plans;
}

inline const Plan& part_of(const std::vector<Plan>& life, LifePart part) {
  for (const Plan& plan : life)
    if (plan.part == part) return plan;
  throw std::logic_error("a life has all parts");
}

/// Highest live bytes of the device buffers that pass `filter`.
template <class Filter>
Bytes peak_of(const Plan& plan, Filter filter) {
  Bytes live{0};
  for (const Buffer& buffer : plan.buffers)
    if (buffer.initial && buffer.memory == Memory::device && filter(buffer)) live += buffer.bytes;
  LiveMeter meter(live);
  for (const Op& op : plan.ops) {
    meter.enter(op.phase);
    if (op.kind != OpKind::allocate && op.kind != OpKind::release) continue;
    const Buffer& buffer = plan.buffers[op.buffer.index];
    if (buffer.memory == Memory::device && filter(buffer))
      meter.change(buffer.bytes * (op.kind == OpKind::allocate ? 1 : -1));
  }
  return meter.peak();
}
inline Bytes live_peak(const Plan& plan) {
  return peak_of(plan, [](const Buffer&) { return true; });
}
inline Bytes state_peak(const Plan& plan) {
  return peak_of(plan, [](const Buffer& buffer) { return buffer.role == Role::state; });
}

}  // namespace ebb::test
