// The path that a step took: ops one after another, each with why it started no earlier, that cover the step from its
// first tick to its last without a gap. For explanations; the longest chain of ops alone is critical_path (verify.hpp).
//
// Walked from the end. The last op to end decided the step. An op started when the last of these had ended:
//   an op that it depends on, the op before it on its stream, the last op of the host thread before it (the host issues
//   in program order), or, of copies, the copy of the same direction whose end let it onto the link.
// That one is the op before it on the path. Time between the two is waiting: for the host thread to issue it, or, of a
// collective, for the other ranks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/plan.hpp"
#include "models/timeline.hpp"

namespace ebb {

/// Why an op of the path started no earlier than it did.
enum class Wait : std::uint8_t {
  nothing,     // it is the first
  dependency,  // an op that it depends on
  stream,      // the op before it on its stream
  link,        // another copy of the same direction
  host,        // the host thread, which had not issued it yet
  peers,       // the other ranks of the collective
};
std::string_view name_of(Wait wait);

struct PathOp {
  OpId op;
  Ticks start{0};
  Ticks end{0};
  Wait wait = Wait::nothing;
  Ticks waited{0};  // before `start`, since the op before it on the path ended

  Ticks time() const { return end - start + waited; }
};

/// First to last. The sum of time() is the end of the op that ends last; ops that take no time and waited for none are
/// left out. Preconditions: as of simulate(), a predicted timeline of this plan. O(ops + deps + copies log copies).
std::vector<PathOp> step_path(const Plan& plan, const Timeline& timeline);

}  // namespace ebb
