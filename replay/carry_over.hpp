// Carry-over: which device buffers of one plan of a rank's life are which of the next: by name, as plan.hpp says.
//
// Two moments. Between parts what is alive must be exactly what the next plan begins with. Behind the host's look at
// the gradient norm a skip plan goes on in the midst of a step: what is alive then must exist there, too. Not here:
// storage (device_memory.hpp), whose blocks stay where they are.
#pragma once

#include <vector>

#include "models/plan.hpp"

namespace ebb::replay {

enum class Carry : std::uint8_t { between_parts, behind_decision };

/// By buffer of `next`: the one of `last` that it goes on from; none() where nothing is alive under its name. `alive`:
/// by buffer of `last`, device buffers only. InputError that names the buffer and both parts.
std::vector<BufferId> carry_over(const Plan& last, const std::vector<bool>& alive, const Plan& next, Carry when);

}  // namespace ebb::replay
