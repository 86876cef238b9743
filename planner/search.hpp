// Search over policy x chunk size x fraction x slots, and the recommendation rule (design.md, "The recommendation").
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/job.hpp"
#include "models/timeline.hpp"
#include "planner/flags.hpp"
#include "planner/lower.hpp"

namespace ebb {

/// One phase of the step: duration on the slowest rank, memory on whichever rank holds most.
struct PhaseAnswer {
  Phase phase = Phase::forward;
  Seconds duration{0};
  Bytes device_peak{0};      // allocated
  Bytes device_reserved{0};  // upper bound of what this phase makes the allocator hold
  Bytes host_pinned{0};
};

/// What the parts of a life make the allocator hold at most, by margins (reserve_margin.hpp), max over ranks.
struct PartBounds {
  Bytes steps{0};
  Bytes load{0};    // as the job starts; 0: fresh
  Bytes resume{0};  // a load with optimizer state
  Bytes save{0};    // 0: it takes no device memory
};

/// One candidate evaluated on the worst rank of every distinct pipeline stage.
struct Answer {
  Candidate candidate;
  std::vector<std::string> flags;  // argument tokens to paste
  std::string requires_megatron;   // "", "main", "dev", "pr6544" or "ebb" (Ebb's own runtime)
  std::string objection;           // why Megatron would refuse it for this job; "" when it would not
  bool deployable = false;         // under the Megatron asked for, and no objection
  bool fits_device = false;
  bool fits_host = false;
  std::vector<Term> device_terms;   // of the rank with the highest peak, between steps; without optimizer state
  Bytes device_between_steps{0};    // allocated, max over ranks
  Bytes device_peak{0};             // allocated, max over ranks
  Bytes cap{0};                     // tidal: live bytes stay below it, the candidate's or the job's default
  bool cap_keeps = true;            // ... and what it leaves room for beside the peak never moves
  Bytes device_reserved{0};         // what the allocator may need: a bound with margins, and no less than the replay
  Bytes device_reserved_likely{0};  // ... and what a replay of it holds (reserved.hpp); 0: not asked for
  Phase decides = Phase::step;      // step: a step of the job; load, save: these need more than any step
  Bytes device_resume{0};           // device_reserved of the same job resumed with optimizer state; 0: not asked for
  PartBounds part_bounds;
  std::vector<std::size_t> reserving_ranks;  // the evaluator's ranks that may decide it
  Bytes host_pinned_per_rank{0};             // max over ranks
  Bytes host_pinned_per_host{0};
  Bytes host_pinned_per_socket{0};   // beside the socket with most of the job's GPUs
  Bytes socket_memory{0};            // a socket's part of the host's memory
  Bytes host_pageable_per_host{0};   // beside them at most, so that both together are what must fit (host_demand.hpp)
  Phase host_decides = Phase::step;  // in which they do: step, init, load or save
  Seconds optimizer{0};              // the step phase, max over ranks
  Seconds step{0};                   // the whole step
  double slowdown = 1.0;             // step / resident's step
  Seconds first_step{0};  // the first whole step and the second, max over the ranks simulated (first_step.hpp)
  Seconds second_step{0};
  Bytes first_steps_pinned{0};  // host bytes that a rank pins in these two, max likewise
  std::string reason;
  std::vector<PhaseAnswer> phases;
  Bytes host_needed() const { return host_pinned_per_host + host_pageable_per_host; }
  bool feasible() const { return fits_device && fits_host; }
};

/// How far a search is.
struct SearchProgress {
  std::int64_t done = 0;         // candidates evaluated or left out
  std::int64_t total = 0;        // all of them
  const Answer* best = nullptr;  // the fastest so far that fits
};

/// What the recommended answer is best in, of those that can be deployed and fit (recommend.hpp).
enum class Objective : std::uint8_t { step, memory, balanced };

struct SearchOptions {
  Megatron megatron = Megatron::any;
  Objective objective = Objective::step;
  bool exhaustive = false;  // evaluate every candidate instead of pruning by bounds: for tests
  bool cures = true;        // when nothing fits, try what would help
  bool likely = false;      // replay the allocator for all rows of the result, not only for those that may win
  std::function<void(const SearchProgress&)> progress = {};  // called after each evaluation, in search()'s thread
  bool front = false;                                        // the whole front of memory against time
  bool resume = false;  // device_resume of all rows and of the front, not only of the recommended one
};

struct SearchResult {
  std::optional<std::size_t> recommended;  // into candidates; nullopt: nothing in question is feasible
  std::vector<Answer> candidates;          // best of each policy and the neighbours worth showing, in table order
  std::vector<Answer> front;               // where asked for: by memory ascending (front.hpp)
  Bytes device_budget{0};
  Bytes host_budget{0};
  Objective objective = Objective::step;
  bool fixed = false;              // the job names the policy
  std::string shortfall;           // when nothing fits: by how much
  std::vector<std::string> cures;  // ... and what would help, each tried
};

/// At most eight candidates of Megatron's (every policy's best, chunked at the production size, and the chunked and
/// windowed candidates that need least memory), then Ebb's own. `job.offload` limits what is tried. Precondition:
/// check(job) passed. Deterministic.
SearchResult search(const Job& job, const SearchOptions& options);

/// Whether search() would recommend anything, whatever: found sooner.
bool anything_fits(const Job& job, Megatron megatron);

/// The job's budgets, or what they default to: device memory less the context, and the host's memory. The host's is for
/// all that Answer::host_needed() counts.
Bytes device_budget_of(const Job& job);
Bytes host_budget_of(const Job& job);

/// One candidate, evaluated like search does; `reason` says what stands against it. Preconditions: check(job) passed
/// and the candidate is in range (constraints.hpp).
/// `also_as`: it must get through this start as well, as in search_robustly() (robust.hpp).
Answer evaluate(const Job& job, const Candidate& candidate, std::optional<Start> also_as = std::nullopt);

}  // namespace ebb
