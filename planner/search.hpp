// Search over policy x chunk size x fraction x slots, and the recommendation rule (design.md, "The recommendation").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/job.hpp"
#include "models/timeline.hpp"
#include "planner/lower.hpp"

namespace ebb {

/// Which Megatron-LM the user runs; decides which flags exist.
enum class Megatron : std::uint8_t { any, main, dev, pr6544 };

/// One candidate evaluated on the worst rank of every distinct pipeline stage.
struct Answer {
  Candidate candidate;
  std::vector<std::string> flags;  // argument tokens to paste
  std::string requires_megatron;   // "", "main", "dev", "pr6544" or "ebb" (Ebb's own runtime)
  bool deployable = false;         // under the Megatron asked for
  bool fits_device = false;
  bool fits_host = false;
  Bytes device_peak{0};           // allocated, max over ranks
  Bytes device_reserved{0};       // upper bound of what the allocator holds
  Bytes host_pinned_per_rank{0};  // max over ranks
  Bytes host_pinned_per_host{0};
  Bytes host_pageable_per_host{0};
  Seconds optimizer{0};   // the step phase, max over ranks
  Seconds step{0};        // the whole step
  double slowdown = 1.0;  // step / resident's step
  std::string reason;
  std::vector<PhaseSummary> phases;  // of the slowest rank
  bool feasible() const { return fits_device && fits_host; }
};

struct SearchOptions {
  Megatron megatron = Megatron::any;
  bool exhaustive = false;  // simulate every breakpoint instead of pruning by bounds: for tests
};

struct SearchResult {
  std::optional<std::size_t> recommended;  // into candidates; nullopt: nothing deployable is feasible
  std::vector<Answer> candidates;          // best of each policy and the neighbours worth showing, in table order
  Bytes device_budget{0};
  Bytes host_budget{0};
  std::string shortfall;  // when nothing fits: by how much, and what would cure it
};

SearchResult search(const Job& job, const SearchOptions& options);

/// One candidate, evaluated like search does. InputError when the candidate does not suit the job.
Answer evaluate(const Job& job, const Candidate& candidate);

}  // namespace ebb
