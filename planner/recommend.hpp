// The recommendation rule, on answers that are already there: which candidate of a policy stands for it, which policy
// is recommended, and what to say about it. Not here: what is evaluated (search.hpp).
//
// Rule: `resident` when it fits. Otherwise the fastest of the deployable candidates that fit the device (as reserved
// bytes) and the host (as pinned bytes). Steps are compared in thousandths of the resident step, rounded up, because no
// prediction is closer than that; among equals the lower reserved, then allocated, peak wins, then the shorter step.
// This is one total order, so the best of the policies' bests is the best of all.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/search.hpp"

namespace ebb {

/// A slow-down in thousandths, rounded up.
std::int64_t thousandths(double slowdown);

/// Whether the rule prefers `a`, when both are eligible.
bool faster(const Answer& a, const Answer& b);
/// Whether `a` needs less device memory; among equals, whether the rule prefers it.
bool smaller(const Answer& a, const Answer& b);

/// The whole rule over one answer (or more) of each policy; nullopt: nothing deployable is feasible. `fixed`: the
/// policy that the job names, the only one to recommend.
std::optional<std::size_t> recommend(std::span<const Answer> answers, std::optional<Policy> fixed);

/// One sentence: why the recommended answer. Precondition: result.recommended.
std::string reason_for(const SearchResult& result);

/// "needs 62.3 GiB of a host's memory, ...", for an answer that does not fit the host although its pinned bytes do.
std::string host_need_of(const Answer& answer);

/// Why a candidate is not the answer: "over the device budget by 11.4 GiB", "needs Megatron dev", the objection to it,
/// or "" for one that could be it.
std::string obstacle_of(const Answer& answer, Bytes device_budget, Bytes host_budget);

}  // namespace ebb
