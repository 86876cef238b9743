// explain: why a candidate costs what it costs, and what would change the answer. Everything in it is computed for the
// job at hand: neighbours, levers and what-ifs are evaluated, not looked up.
//
//   path          what the slowest rank's step waited for, from its first tick to its last (step_path.hpp)
//   bottleneck    what takes most of the path, and the cluster's figure that decides it
//   bounds        what the step phase cannot be below on this hardware, whatever the schedule
//   memory        what is allocated at the peak when no optimizer state is on the device at all
//   neighbours    the next smaller and larger value of each of the candidate's parameters
//   shard         Megatron keeps shards whole: the largest one bounds every chunk from below
//   what-ifs      the job changed in one way, searched again
#pragma once

#include <optional>

#include "models/job.hpp"
#include "planner/search.hpp"
#include "reports/explain.hpp"

namespace ebb {

/// Segments of a path in a report, and operations of it in a document, at most.
inline constexpr std::size_t kMostPathSegments = 12;
inline constexpr std::size_t kMostPathOperations = 1000;

/// `answer`: of the candidate to explain. `recommended`: what search() recommends for the job, with which the what-ifs
/// are compared; nullopt: nothing. `how`: what was searched for; `also_as`: the job is at its worst (robust.hpp), and
/// this its own start. Preconditions: check(job, how.megatron) passed, the candidate is in range. Deterministic.
reports::Explanation explain(const Job& job, const Answer& answer, const std::optional<Answer>& recommended,
                             const SearchOptions& how = {}, std::optional<Start> also_as = std::nullopt);

}  // namespace ebb
