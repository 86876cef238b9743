// Where an arena puts device buffers: a fixed offset each, so that none shares bytes with another that may be alive at
// the same time (device_lives.hpp). Of one plan, or of all plans of a rank's life in one arena, in which what outlives
// a part stays where it is.
//
// Life. Time is cut into segments in which only one plan runs, one after another in whichever order: a part each, but a
// step and its skip plan share one, as the skip plan goes on in the midst of the step. What is alive where a part
// begins or ends takes its bytes in all segments. Everything else lives in its segment only, by name there: from its
// first to its last use in either plan. (A buffer that some parts end with and others do not know could lend its bytes
// out between; it is not worth the trouble: persistent buffers are alive nearly always.)
#pragma once

#include <span>
#include <vector>

#include "models/memory/arena.hpp"
#include "models/plan.hpp"

namespace ebb::replay {

/// Offsets by buffer; 0 for what is never on the device. Pure.
memory::Arena place_buffers(const Plan& plan);

/// Offsets by plan and buffer. As place_buffers() where there is one plan. Pure.
struct LifeArena {
  std::vector<std::vector<Bytes>> offsets;
  Bytes size;
};
LifeArena place_life(std::span<const Plan* const> plans);

}  // namespace ebb::replay
