// Where an arena puts device buffers: a fixed offset each, so that none shares bytes with another that may be alive at
// the same time (device_lives.hpp). Of one plan, or of all plans of a rank's life in one arena, in which what outlives
// a part stays where it is.
//
// Life. Time is cut into segments in which only one plan runs, one after another in whichever order: a part each. A
// step that goes on as its skip plan has run what both begin with, so that it is the skip's segment. A buffer takes
// bytes in a segment only while its plan has it alive. What is alive where some part begins or ends has one offset in
// all parts, by name; everything else has one in its part, a step and its skip plan together.
//
// One offset for several lives: if a buffer begins its next life while an op may still work on the storage of the last
// (a release's `after`), both would have the same bytes. That is refused.
#pragma once

#include <span>
#include <vector>

#include "models/memory/arena.hpp"
#include "models/plan.hpp"

namespace ebb::replay {

/// Offsets by buffer; 0 for what is never on the device. Pure. InputError as above.
memory::Arena place_buffers(const Plan& plan);

/// Offsets by plan and buffer. As place_buffers() where there is one plan. Pure. InputError as above.
struct LifeArena {
  std::vector<std::vector<Bytes>> offsets;
  Bytes size;
  Bytes max_live;  // of the part where that is largest: no arena is smaller
};
LifeArena place_life(std::span<const Plan* const> plans);

}  // namespace ebb::replay
