// The front of device memory against step time: the candidates that no other one beats in both.
//
// Compared are the bound of what a candidate reserves on the device and its step in thousandths of the resident step,
// like the recommendation does. Then the allocator is replayed for what is left, and where that needs more than its
// bound, so that another one beats it, it is left out as well. Candidates that cannot be
// chosen hide none that can: one that Megatron takes and whose pinned bytes fit the host is beaten only by its like,
// any other by everything. So the part of the front that can be chosen is a front of its own, and what this hardware
// could do beyond it stands beside it. The device budget plays no part: where a candidate fits, so does what beats it.
//
// Why it is complete. Candidates are taken by their bounds, fastest first (branch and bound for skylines: Papadias,
// Tao, Fu and Seeger, SIGMOD 2003). One is left out only where an answer that is known already beats its bound
// strictly, in memory or in time; its answer is no better than its bound, so that one beats it too. A family is left
// out whole in the same way.
//
// What it is complete for: the bounds. A candidate that the bound of another beats is left out even where that one's
// replay, which comes afterwards, needs more than its bound and than this one. The recommendation chooses by the same
// bounds (search.cpp), so that it is on the front; both would have to go by replays together.
#pragma once

#include <optional>
#include <vector>

#include "planner/answers.hpp"

namespace ebb {

/// Whether the recommendation might be `answer` but for the device's memory. `fixed`: the policy that the job names.
bool can_be_chosen(const Answer& answer, std::optional<Policy> fixed);

/// By memory ascending, each with the replay of its allocator (`resume`: and of its resume). Among equals in both the
/// rule's preference stays (recommend.hpp). Deterministic.
std::vector<Answer> front_of(Answers& answers, bool resume = false);

/// The same of answers that are there, whatever their order: what front_of() is tested against.
std::vector<Answer> front_of(std::vector<Answer> answers, std::optional<Policy> fixed);

}  // namespace ebb
