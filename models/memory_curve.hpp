// How memory changes over the time of one plan: the events, in order, and what is alive after each. For the peaks of a
// step (timeline.cpp) and for whoever draws the curve (reports).
//
// Device memory has two curves. "Allocated" is what the allocator counts: from the allocation to the release. "Held" is
// what nobody else can use: to the end of the release's `after` where that is later (torch's record_stream). Host
// memory is counted as held. Not here: rounding and fragmentation (sim/).
#pragma once

#include <vector>

#include "models/plan.hpp"
#include "models/timeline.hpp"

namespace ebb {

struct LiveBytes {
  Bytes allocated{0};
  Bytes held{0};
  Bytes pinned{0};
  Bytes pageable{0};

  void add(const Buffer& buffer, MemoryEvent::What what) {
    using What = MemoryEvent::What;
    const Bytes change = what == What::allocate ? buffer.bytes : Bytes{-buffer.bytes.value};
    const bool counts_held = what != What::release;
    if (buffer.memory == Memory::device) {
      if (what != What::hand_back) allocated += change;
      if (counts_held) held += change;
    } else if (counts_held) {
      (buffer.memory == Memory::pinned ? pinned : pageable) += change;
    }
  }

  bool operator==(const LiveBytes&) const = default;
};

/// What is alive before the first op.
LiveBytes initial_bytes(const Plan& plan);

/// All changes, in time order, into `events`. Precondition: timeline has the plan's ops.
void memory_events(const Plan& plan, const Timeline& timeline, std::vector<MemoryEvent>& events);

}  // namespace ebb
