// Which parts a script runs, one after another, as far as that is known before: what memory has to be there for. And
// whether all ranks are there to run them.
// Not here: the life itself (rank_life.cpp, life_reference.cpp), which decides anew which steps are skipped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/life.hpp"

namespace ebb::replay {

/// Parts in order; of steps in a row two at most, each with its skip part behind it where the rank has one. InputError
/// for an event that cannot come where it stands, and for a part that the rank has no plan of.
std::vector<LifePart> parts_of(const LifeScript& script, const LifePrograms& programs);

/// InputError where the ranks of a whole job are not 0, 1, ...: a checkpoint has one file for each. `ranks`: ascending.
void check_all_ranks(std::span<const std::int64_t> ranks);

}  // namespace ebb::replay
