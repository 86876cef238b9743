// Hazard: one thing that is wrong with a plan, with the ops, the buffer and the edge that would cure it. What
// verify.hpp and verify_together.hpp return. Not here: how hazards are found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "models/plan.hpp"

namespace ebb {

enum class HazardKind : std::uint8_t {
  not_topological,      // a dependency on a later op
  use_before_allocate,  // an access not ordered after the buffer's allocation
  use_after_release,    // an access not ordered before the storage is handed back
  unordered_access,     // two accesses, one a write, to overlapping bytes without an order
  double_release,
  leak,                 // allocated, never released, not `initial` nor what the part of life makes; or allocated again
                        // while alive
  issued_early,         // may start before the host op that precedes it in the plan has ended: a host issues in order
  outlives_phase,       // alive when the phase that it ends with (Buffer::ends_with) is over
  stale_read,           // reads a copy of state, the host's or a device buffer's, that is not the newest
  lost_state,           // a buffer that alone has the newest value of some state is released or overwritten
  over_budget,          // live device bytes may exceed the budget
  collective_mismatch,  // two ranks issue different operations on one communicator
  collective_deadlock,  // ranks wait for each other: they order operations on two communicators differently
};
std::string_view name_of(HazardKind kind);

/// `first` must have ended before `second` starts. Where `first` comes later in the plan, a dependency cannot say so:
/// it has to move.
using Edge = std::pair<OpId, OpId>;

struct Hazard {
  HazardKind kind = HazardKind::leak;
  OpId first;
  OpId second;  // none() where one op tells it all
  BufferId buffer;
  std::optional<Edge> missing;  // the edge whose absence is the hazard; none where no order of these ops is sound
  std::string text;             // one sentence naming ops, buffer and missing edge
};

/// "copy-h2d 12 (chunk 3)".
std::string describe(const Plan& plan, OpId op);
/// "; needs: copy-d2h 12 -> kernel adam 17".
std::string describe(const Plan& plan, const Edge& missing);

}  // namespace ebb
