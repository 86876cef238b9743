// What the processes of a life tell each other beside run_exchange.hpp: after each step its digests, at the end the
// numbers. Small texts; all functions are collective over the processes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "replay/life.hpp"
#include "replay/processes.hpp"

namespace ebb::replay {

/// What a step left on the ranks of one process.
struct ProcessStepEnd {
  std::uint64_t digest = 0;  // sum
  bool skipped = false;
  bool agree = true;  // all ranks have the same `skipped`
};
/// Of every process.
std::vector<ProcessStepEnd> exchange_step_end(Processes& processes, const ProcessStepEnd& own);

/// At process 0 the numbers of all, by ascending rank; elsewhere its own. `rank`: the global one.
std::vector<LifeNumbers> gather_lives(Processes& processes, std::int64_t rank, LifeNumbers own);

/// One rank's numbers as text and back.
std::string to_text(std::int64_t rank, const LifeNumbers& numbers);
std::pair<std::int64_t, LifeNumbers> life_from_text(std::string_view text);

}  // namespace ebb::replay
