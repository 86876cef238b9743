// PlanBuilder: writes the ops of one Plan, one after another, and keeps its dependency lists minimal.
//
// Why: every lowering says what an op needs; which of that already follows from stream order or from another
// dependency is worked out here, once. It also holds the rule of the host thread: what it issues after one of its own
// ops cannot start before that op has ended, so that op becomes a dependency unless it is one already.
// Not here: what the ops mean (step_frame.hpp, lower_*.cpp).
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "models/op_order.hpp"
#include "models/plan.hpp"

namespace ebb {

/// The five streams of every lowered plan, one of each kind, in this order.
inline constexpr StreamId kHost{0};
inline constexpr StreamId kComputeStream{1};
inline constexpr StreamId kH2d{2};
inline constexpr StreamId kD2h{3};
inline constexpr StreamId kComm{4};
inline constexpr std::size_t kStreamCount = 5;

class PlanBuilder {
 public:
  /// Empties `plan` and writes into it; its vectors keep their memory. `plan` outlives the builder.
  PlanBuilder(Plan& plan, std::size_t expected_ops);

  /// `ends_with`: see plan.hpp.
  BufferId buffer(std::string_view name, Memory memory, Bytes bytes, bool initial,
                  std::optional<Phase> ends_with = std::nullopt);
  /// A device buffer of the plan's own, named "`name` `index`".
  BufferId buffer(std::string_view name, std::size_t index, Bytes bytes, std::optional<Phase> ends_with = std::nullopt);

  /// What the buffer is for; state: `states` of the elements `holds` (see plan.hpp).
  void role(BufferId buffer, Role role) { plan_.buffers[buffer.index].role = role; }
  void state(BufferId buffer, std::uint8_t states, ElementRange holds, bool packed = false);
  /// Role largest, of these parameters of the stage: their places in Plan::parameters where that is filled
  /// (describe_parameters.hpp).
  void largest(BufferId buffer, const std::vector<std::uint32_t>& parameters) {
    plan_.buffers[buffer.index].role = Role::largest;
    plan_.buffers[buffer.index].parameters = parameters;
  }

  /// Appends `op` (its deps fields are set here). `deps` may hold none().
  OpId add(Op op, std::initializer_list<OpId> deps = {});

  /// `tensors`: how many allocations the buffer stands for.
  OpId allocate(BufferId buffer, Phase phase, std::uint32_t chunk = kNoChunk, std::uint32_t tensors = 1);
  /// `after`: see plan.hpp.
  OpId release(BufferId buffer, Phase phase, std::initializer_list<OpId> deps = {}, OpId after = OpId::none(),
               std::uint32_t chunk = kNoChunk);

  OpId last_on(StreamId stream) const { return order_.last_on(stream); }
  /// Device bytes of the buffers that are alive behind what has been written.
  Bytes live() const { return live_; }
  /// The part of life that is being written (Plan::part, set before).
  LifePart part() const { return plan_.part; }

 private:
  BufferId next_buffer(Memory memory, Bytes bytes, bool initial, std::optional<Phase> ends_with);

  Plan& plan_;
  Order order_;
  Bytes live_{0};
};

}  // namespace ebb
