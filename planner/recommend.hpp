// The recommendation rule, on answers that are already there: which candidate of a policy stands for it, which policy is
// recommended, and what to say about it. Not here: what is evaluated (search.hpp).
//
// Rule: `resident` when it fits. Otherwise, of the deployable policies whose answer fits the device (as reserved bytes)
// and the host (as pinned bytes), the fastest; steps within 0.1 % of the fastest count as equal, because no prediction is
// closer than that, and among equals the lower reserved, then allocated, peak wins, then the shorter step.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/search.hpp"

namespace ebb {

/// Steps this close to the fastest count as equal.
inline constexpr double kEqualSteps = 1e-3;

/// Index of the answer that the rule prefers among the feasible ones, whatever its policy; nullopt: none is feasible.
std::optional<std::size_t> fastest_feasible(std::span<const Answer> answers);

/// Index of the answer nearest to fitting: least over the device budget, then least pinned. Precondition: not empty.
std::size_t nearest_to_feasible(std::span<const Answer> answers, Bytes device_budget, Bytes host_budget);

/// The whole rule over one answer (or more) of each policy; nullopt: nothing deployable is feasible. `fixed`: the policy
/// that the job names, the only one to recommend.
std::optional<std::size_t> recommend(std::span<const Answer> answers, std::optional<Policy> fixed);

/// One sentence: why the recommended answer. Precondition: result.recommended.
std::string reason_for(const SearchResult& result);

/// Why a candidate is not the answer: "over the device budget by 11.4 GiB", "needs Megatron dev", the objection to it,
/// or "" for one that could be it.
std::string obstacle_of(const Answer& answer, Bytes device_budget, Bytes host_budget);

}  // namespace ebb
