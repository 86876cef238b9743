// DeviceState: optimizer state that outlives a step on the device: moments in one buffer, masters in another, because
// masters come when the optimizer is built and moments in the first step. And how state comes into being.
// Internal to lowering.
#pragma once

#include <optional>
#include <string_view>

#include "planner/lowerings.hpp"

namespace ebb {

/// Names are unique in a plan and the same in all parts of a life.
struct StateNames {
  std::string_view moments = "moments";
  std::string_view masters = "master weights";
};

struct DeviceState {
  BufferId moments;  // none(): not kept here
  BufferId masters;  // ... or there are none
};

/// Buffers of `states` of `part`, as they are when the plan's part begins. `ends_with`: see Buffer.
DeviceState device_state(PlanBuilder& plan, const Precision& precision, const Part& part, std::uint8_t states,
                         StateNames names = {}, std::optional<Phase> ends_with = std::nullopt);

/// Allocates and fills what of `state` the first step makes: moments of 0, masters too where the optimizer holds them.
/// Nothing in other steps.
void come_into_being(PlanBuilder& plan, const Precision& precision, const Part& part, const DeviceState& state);

/// Moments of `range` in `buffer` become 0, in `calls` pieces.
OpId zero_moments(PlanBuilder& plan, const Precision& precision, Phase phase, std::uint32_t chunk, ElementRange range,
                  std::uint32_t calls, BufferId buffer, std::initializer_list<OpId> deps);

/// fp32 of the model's parameters into `buffer`. `master_size`: bytes of one of them.
OpId make_masters(PlanBuilder& plan, const Precision& precision, Phase phase, std::uint32_t chunk, ElementRange range,
                  std::uint32_t calls, std::int64_t master_size, BufferId buffer, std::initializer_list<OpId> deps);

}  // namespace ebb
