// The recommendation rule, on answers that are already there: which candidate of a policy stands for it, which policy
// is recommended, and what to say about it. Not here: what is evaluated (search.hpp).
//
// Among which: what can be deployed. Ebb's own schedules cannot, because no Megatron-LM has them, and are recommended
// only to a job that names one: whoever asks for a policy by name gets an answer about it.
//
// Rule: `resident` when it fits. Otherwise the fastest of the deployable candidates that fit the device (as reserved
// bytes) and the host (as pinned bytes). Steps are compared in thousandths of the resident step, rounded up, because no
// prediction is closer than that; among equals the lower reserved, then allocated, peak wins, then the shorter step.
// This is one total order, so the best of the policies' bests is the best of all.
//
// Other objectives (--objective), always among what is deployable and fits:
//   memory    the least reserved bytes, whatever the step
//   balanced  the least reserved bytes of those whose step is within 2 % of the fastest one's. A prediction is off by
//             2 % itself (its median against own replays), so that no slower step can be told from it; what memory is
//             to be had for that, one takes. `resident` counts like any other: it is often that fastest step.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/search.hpp"

namespace ebb {

/// A slow-down in thousandths, rounded up.
std::int64_t thousandths(double slowdown);

/// Whether the rule prefers `a`, when both are eligible.
bool faster(const Answer& a, const Answer& b);
/// Whether `a` needs less device memory; among equals, whether the rule prefers it.
bool smaller(const Answer& a, const Answer& b);

std::string_view name_of(Objective objective);
std::vector<std::string_view> objective_words();
/// nullopt: no objective has this name.
std::optional<Objective> objective_named(std::string_view word);

/// The longest step, in thousandths of resident's, that `balanced` takes where the fastest is `fastest`.
std::int64_t balanced_limit(std::int64_t fastest);

/// Whether it is one of Ebb's own schedules and the one that the job names.
bool asked_for_by_name(Policy policy, std::optional<Policy> fixed);
/// Whether the rule may pick `answer`, were it to fit: of the `fixed` policy, if any, and deployable or asked for by
/// name.
bool in_question(const Answer& answer, std::optional<Policy> fixed);

/// The fastest that is in question and feasible.
std::optional<std::size_t> fastest_of(std::span<const Answer> answers, std::optional<Policy> fixed);

/// The whole rule over one answer (or more) of each policy; nullopt: nothing in question is feasible. `fixed`: the
/// policy that the job names, the only one to recommend.
std::optional<std::size_t> recommend(std::span<const Answer> answers, std::optional<Policy> fixed,
                                     Objective objective = Objective::step);

/// " while its checkpoint is loaded", where that decides what an answer needs; "" in a step.
std::string_view when_decided(const Answer& answer);

/// One sentence: why the recommended answer. Precondition: result.recommended.
std::string reason_for(const SearchResult& result);

/// " while a checkpoint is saved", where that decides what an answer needs of a host; "" in a step.
std::string_view when_host_decided(const Answer& answer);

/// "is over the NUMA budget by ...", for an answer that does not fit the host although it needs no more than the host
/// budget.
std::string host_need_of(const Answer& answer);

/// Why a candidate is not the answer: "over the device budget by 11.4 GiB", "needs Megatron dev", the objection to it,
/// or "" for one that could be it.
std::string obstacle_of(const Answer& answer, Bytes device_budget, Bytes host_budget);

}  // namespace ebb
