// What to say when nothing that may be recommended fits: by how much, and what would help. Cures are not guessed: each
// is the same job with one thing changed, searched again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/search.hpp"

namespace ebb {

/// The answer in question (recommend.hpp) that is nearest to fitting, and what it lacks. `fixed`: the only policy that
/// the job allows.
std::string shortfall_of(const SearchResult& result, std::optional<Policy> fixed);

/// Changes after which something deployable fits, one line each, cheapest first: a larger budget, another Megatron or
/// Ebb's runtime, full recomputation, a smaller micro-batch, more GPUs. Empty when none of them helps.
std::vector<std::string> cures_for(const Job& job, const SearchResult& result, const SearchOptions& options);

}  // namespace ebb
