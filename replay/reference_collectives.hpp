// What a collective does once all of its members have arrived: sums and copies between their memories.
//
// A reduced element is summed in ring order: its owner's right neighbour begins, the owner is last, each sum rounded to
// the gradient's type. With two members that is a + b. The owner is the member whose equal part of the bucket the
// element lies in.
#pragma once

#include <span>

#include "replay/reference_rank.hpp"

namespace ebb::replay {

struct Member {
  ReferenceRank* rank = nullptr;
  std::uint32_t op = 0;
};

/// The two ops are the same collective: what they do, their type, and their buckets.
bool same_collective(const Action& a, const Action& b);
/// Precondition: `members` are all of the group in its order, with the same collective.
void exchange(std::span<const Member> members);

}  // namespace ebb::replay
