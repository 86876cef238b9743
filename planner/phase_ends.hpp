// Phase ends: buffers that a lowering declares to be gone when a phase ends (Buffer::ends_with), and are not. Chunk
// windows that pile up from step to step, gradient copies that forward meets again, state that was meant to leave and
// stayed: the plan computes the right numbers and only the memory is wrong.
//
// The rule. A phase ends with its last op that is not an allocation or a release, on whichever stream. The next op of
// another phase in program order begins what follows. By then, in program order, the buffer has been released; and what
// its release waits for (`after`) is not an op of what follows. Program order suffices: the host issues in it, and it
// is the allocator's order. A plan's last phase is followed by nothing, and what it leaves is a leak (verify.hpp).
#pragma once

#include <vector>

#include "planner/hazard.hpp"

namespace ebb {

/// Appends to `hazards`, in op order. O(ops + phases * buffers).
void find_phase_leaks(const Plan& plan, std::vector<Hazard>& hazards);

}  // namespace ebb
