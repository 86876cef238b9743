// The front of device memory against step time: the candidates that no other one beats in both.
//
// Compared are what a candidate reserves on the device at most, the replay of its allocator included, and its step in
// thousandths of the resident step, like the recommendation does. Candidates that cannot be
// chosen hide none that can: one that Megatron takes and whose memory fits the host is beaten only by its like,
// any other by everything. So the part of the front that can be chosen is a front of its own, and what this hardware
// could do beyond it stands beside it. The device budget plays no part: where a candidate fits, so does what beats it.
//
// Why it is complete. Candidates are taken by their bounds, fastest first (branch and bound for skylines: Papadias,
// Tao, Fu and Seeger, SIGMOD 2003). One is left out only where an answer that is known already beats its bound
// strictly, in memory or in time; its answer is no better than its bound, so that one beats it too. A family is left
// out whole in the same way.
//
// Replays raise what an answer needs over its bound, and they are dear. So the front is found by bounds, its points are
// replayed, and where any was not before, all is gone through again with what is known by then: a candidate that only
// the bound of another had beaten comes back. Each turn replays at least one more, so this ends. At its end every point
// of the front has been replayed, and whatever is not on it is beaten by one that is: by known answers, each of which
// is on the front or beaten by it, and what a candidate needs is no less than its bound.
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
