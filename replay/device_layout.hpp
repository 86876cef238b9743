// Where an arena puts a plan's device buffers: a fixed offset each, so that none shares bytes with another that may be
// alive at the same time (device_lives.hpp).
#pragma once

#include "models/memory/arena.hpp"
#include "models/plan.hpp"

namespace ebb::replay {

/// Offsets by buffer; 0 for what is never on the device. Pure.
memory::Arena place_buffers(const Plan& plan);

}  // namespace ebb::replay
