#include "replay/injected_value.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/types.hpp"

namespace ebb::replay {

/// The padded element of the rank's first shard that is not empty.
InjectedValue::InjectedValue(const Program& program, std::span<const Ready> actions) {
  const Plan& plan = *program.plan;
  const auto shard =
      std::find_if(plan.shards.begin(), plan.shards.end(), [](const PlanShard& s) { return s.numel.value > 0; });
  if (shard == plan.shards.end()) return;
  bytes_ = {size_of(plan.precision.grads)};
  at_ = bytes_ * shard->at.value;
  for (std::uint32_t op = 0; op < actions.size(); ++op) {
    const auto* stand = std::get_if<Stand>(&actions[op]);
    if (stand == nullptr || !stand->backward) continue;
    if (stand->range.begin <= shard->at.value && shard->at.value < stand->range.end) after_ = op;
  }
  bits_ = PinnedBytes({4});
}

void InjectedValue::set(std::optional<float> value) {
  value_ = value;
  if (!value || bits_.host() == nullptr) return;
  if (bytes_.value == 2) {
    const std::uint16_t bits = kernels::bf16_from_fp32(*value);
    std::memcpy(bits_.host(), &bits, sizeof(bits));
  } else {
    std::memcpy(bits_.host(), &*value, sizeof(float));
  }
}

}  // namespace ebb::replay
