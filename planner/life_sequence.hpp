// The sequence of a life: what one part leaves alive on the device is, buffer by buffer, what the next begins with.
// Buffers carry over by name. Not here: what is wrong inside a part (verify.hpp).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/plan.hpp"

namespace ebb {

/// One sentence for every device buffer that `before` leaves and `after` does not begin with, or the other way round,
/// with other bytes or another content; and for names that are there twice.
std::vector<std::string> sequence_breaks(const Plan& before, const Plan& after);

/// The same for every part of one rank's `parts` and every other of them that may follow it (life_parts.hpp); and for
/// skips, which must begin as their steps do, op by op, up to where the host looks at the gradient norm.
std::vector<std::string> life_breaks(std::span<const Plan> parts);

}  // namespace ebb
