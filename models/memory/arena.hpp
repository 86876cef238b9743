// Arena: fixed offsets in one device buffer for slots whose lifetimes are known beforehand.
//
// Why: a caching allocator has to guess; a plan does not. Slots that never live at the same time share bytes, and the
// arena is asked for once. A slot may live several times; it lies at the same offset each time.
//
// The problem (dynamic storage allocation) is NP-hard; this is greedy: in a fixed order each slot takes a gap that
// holds it between those it overlaps in time. A few orders are tried and the smallest arena is kept. No arena can be
// smaller than what is live at the busiest time, so that bound says how good the answer is.
//   By size, length, begin or end, into the smallest gap: Pisarchyk and Lee, Efficient Memory Management for Deep
//     Neural Net Inference, 2020.
//   By depth, into the lowest gap: for slots that make room for others (`yields`). Let k(t) equal pieces yield at time
//   t
//     so that those that stay longest beside the others are there whenever any is: they lie one after another from the
//     far end on, the longest first, and take k(t) pieces from there. The others come as levels of a stack. Placed from
//     the top of the stack down, level l lies at the lowest byte above the pieces of its life and above all levels over
//     it; so the level below ends at the largest of k(t) pieces + the levels alive at t, which is what is live. That is
//     the bound, whatever the sizes of the levels.
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

/// Any time scale; both ends belong to it.
struct ArenaLife {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

struct ArenaSlot {
  Bytes bytes;
  std::vector<ArenaLife> lives;  // ascending, none over another; none at all: it never lives
  bool yields = false;           // it comes and goes as others leave room: lies at their far end
};

struct Arena {
  std::vector<Bytes> offsets;  // of each slot; 0 for one that is empty or never lives
  Bytes size;
  Bytes max_live;  // lower bound: the largest sum of (aligned) slots that live at the same time
};

/// Places `slots`. Deterministic; O(n^2) for n slots of few lives each. Preconditions: 0 <= bytes, lives as said there,
/// and a sum of all bytes far below 2^63.
Arena place_in_arena(std::span<const ArenaSlot> slots);

}  // namespace ebb::memory
