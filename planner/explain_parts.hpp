// The parts of explain(), one file each. Internal to it.
#pragma once

#include <optional>
#include <vector>

#include "planner/evaluator.hpp"
#include "planner/explain.hpp"
#include "planner/path_segments.hpp"

namespace ebb {

/// Ranks of one host, which share its limits.
inline std::int64_t ranks_per_host(const Job& job) { return std::min(job.cluster.gpus_per_host, job.parallel.gpus); }

/// "windowed 128 MiB, 80 %".
std::string text_of(const Candidate& candidate);

/// Adds rank, step, path, segments and bottleneck.
void explain_path(const Job& job, const RankModel& rank, const SlowestRank& slowest, reports::Explanation& into);

/// One sentence: what takes most of the path, and the figure of the cluster that decides it; where that is forward and
/// backward, also what takes most of the rest.
reports::Bottleneck bottleneck_of(const Job& job, const RankModel& rank, const Plan& plan,
                                  const std::vector<PathOp>& path);

/// Of the slowest rank's step phase: for the bytes that this candidate moves in it.
std::vector<reports::LowerBound> step_bounds(const Job& job, const SlowestRank& slowest);

/// Over the ranks that may decide the candidate's memory.
reports::MemoryBound memory_bound(const Evaluator& evaluator, const Answer& answer);

std::vector<reports::Neighbour> neighbours_of(Evaluator& evaluator, const Answer& answer);

reports::ShardLimit shard_limit(const Evaluator& evaluator, const Candidate& candidate);

/// None where the job cannot run it.
std::optional<reports::Tide> tide_of(Evaluator& evaluator, const Answer& answer);

std::vector<reports::WhatIf> what_ifs(const Job& job, const std::optional<Answer>& recommended,
                                      const SearchOptions& how, std::optional<Start> also_as);

}  // namespace ebb
