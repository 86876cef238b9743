// What the processes of one run tell each other: which ranks there are, NCCL ids before the first collective, step
// times and results after the last step. Small texts; all functions are collective over the processes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/units.hpp"
#include "replay/execute.hpp"
#include "replay/groups.hpp"
#include "replay/processes.hpp"

namespace ebb::replay {

/// Global ranks of all processes, ascending. InputError when one is there twice.
std::vector<std::int64_t> exchange_ranks(Processes& processes, std::int64_t own);

/// Ids of all groups. Each process brings those whose first rank it is.
NcclIds exchange_ids(Processes& processes, const NcclIds& own);

/// Step times of every process.
std::vector<std::vector<Ticks>> exchange_steps(Processes& processes, const std::vector<Ticks>& own);

/// At process 0 the runs of all, by ascending rank; elsewhere its own.
std::vector<RankRun> gather_runs(Processes& processes, RankRun own);

/// One run as text and back.
std::string to_text(const RankRun& run);
RankRun rank_run_from_text(std::string_view text);

}  // namespace ebb::replay
