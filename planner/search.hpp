// Search over policy x chunk size x fraction x slots, and the recommendation rule (design.md, "The recommendation").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/job.hpp"
#include "models/timeline.hpp"
#include "planner/flags.hpp"
#include "planner/lower.hpp"

namespace ebb {

/// One candidate evaluated on the worst rank of every distinct pipeline stage.
struct Answer {
  Candidate candidate;
  std::vector<std::string> flags;  // argument tokens to paste
  std::string requires_megatron;   // "", "main", "dev", "pr6544" or "ebb" (Ebb's own runtime)
  std::string objection;           // why Megatron would refuse it for this job; "" when it would not
  bool deployable = false;         // under the Megatron asked for, and no objection
  bool fits_device = false;
  bool fits_host = false;
  std::vector<Term> device_terms;  // of the rank with the highest peak, between steps; without optimizer state
  Bytes device_between_steps{0};   // allocated, max over ranks
  Bytes device_peak{0};            // allocated, max over ranks
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
