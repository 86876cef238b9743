#include "planner/reserve_margin.hpp"

#include <algorithm>
#include <vector>

namespace ebb {

namespace {

/// bytes * (100 + percent) / 100, rounded up; in integers, so that it is the same everywhere.
Bytes with_margin(Bytes bytes, std::int64_t percent) {
  return bytes + Bytes{ceil_div(std::max<std::int64_t>(bytes.value, 0) * percent, 100)};
}

constexpr std::int64_t kActivationPercent = 5;
constexpr std::int64_t kStepPercent = 25;

}  // namespace

bool in_step_window(const std::vector<PhaseSummary>& phases, std::size_t index) {
  for (std::size_t i = 0; i <= index; ++i)
    if (phases[i].phase == Phase::finalize || phases[i].phase == Phase::step) return true;
  return false;
}

DeviceUse device_use(const Plan& plan, const StepSummary& summary) {
  enum class End : std::uint8_t { none, at_once, after_a_copy };
  std::vector<End> ends(plan.buffers.size(), End::none);
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::release && ends[op.buffer.index] == End::none)
      ends[op.buffer.index] = op.after.valid() ? End::after_a_copy : End::at_once;
  DeviceUse use;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.memory != Memory::device || !buffer.initial) continue;
    if (ends[i] == End::none)
      use.always += buffer.bytes;
    else
      (ends[i] == End::at_once ? use.released : use.leaving) += buffer.bytes;
  }
  for (std::size_t i = 0; i < summary.phases.size(); ++i) {
    const PhaseSummary& phase = summary.phases[i];
    if (in_step_window(summary.phases, i))
      use.step = std::max(use.step, phase.peak_held);
    else
      use.forward_backward = std::max(use.forward_backward, phase.peak_allocated);
  }
  return use;
}

Bytes reserved_bound(Policy policy, const DeviceUse& use) {
  const Bytes activations = with_margin(use.forward_backward, kActivationPercent);
  if (policy == Policy::windowed)
    return activations + use.leaving +
           with_margin(std::max(use.step - use.always - use.leaving, Bytes{0}), kStepPercent);
  return std::max(activations, use.always + with_margin(use.step - use.always, kStepPercent));
}

Bytes bound_of_moment(Bytes peak) {
  return reserved_bound(Policy::resident, {.always = {}, .leaving = {}, .forward_backward = peak, .step = {}});
}

}  // namespace ebb
