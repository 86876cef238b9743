// Arena: fixed offsets in one device buffer for slots whose lifetimes are known beforehand.
//
// Why: a caching allocator has to guess; a plan does not. Slots that never live at the same time share bytes, and the
// arena is asked for once.
//
// The problem (dynamic storage allocation) is NP-hard; this is greedy by size (Pisarchyk and Lee, Efficient Memory
// Management for Deep Neural Net Inference, 2020): in a fixed order each slot takes the smallest gap that holds it
// between those it overlaps in time. A few orders are tried and the smallest arena is kept. No arena can be smaller
// than what is live at the busiest time, so that bound says how good the answer is.
//
// Not here: when slots live (the caller knows) and the allocation of the buffer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/units.hpp"

namespace ebb::memory {

/// Offsets are multiples of this: what cudaMalloc aligns to.
inline constexpr Bytes kArenaAlignment{256};

struct ArenaSlot {
  Bytes bytes;
  std::int64_t first_use = 0;  // any time scale; both ends belong to the lifetime
  std::int64_t last_use = 0;
};

struct Arena {
  std::vector<Bytes> offsets;  // of each slot; 0 for an empty one
  Bytes size;
  Bytes max_live;  // lower bound: the largest sum of (aligned) slots that live at the same time
};

/// Places `slots`. Deterministic; O(n^2). Preconditions: 0 <= bytes, first_use <= last_use, and a sum of all
/// bytes far below 2^63.
Arena place_in_arena(std::span<const ArenaSlot> slots);

}  // namespace ebb::memory
