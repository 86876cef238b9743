// Life: every phase of a job under one candidate: building the model, a checkpoint's load, the first step, the phases
// of a steady step, a skipped step, a save, and, for a job that starts fresh, the resume that may follow some day.
//
// Memory is the maximum over the ranks that may decide it (Evaluator::reserving), each a replay of its allocations;
// durations and what they expose are those of the slowest rank. Parts of a life that no simulation covers (init, load,
// save) last as long as what they pin, move and store; what a process does besides (imports, NCCL, random weights,
// opening files) is not known.
#pragma once

#include <string>
#include <vector>

#include "planner/life_host.hpp"
#include "planner/memory_term.hpp"
#include "planner/search.hpp"

namespace ebb {

/// What is alive at a peak, how much of it, and how that comes about ("4 B x 1,003,782,656 owned elements").
struct LifeTerm {
  MemoryTerm term = MemoryTerm::other;
  Bytes bytes{0};
  std::string origin;
};

struct LifePhase {
  Phase phase = Phase::init;
  std::string variant;    // load: resume, no-load-optim, finetune; first-step: after which; save: how it is sharded
  bool later = false;     // a resume that this job does not begin with: it decides nothing
  std::int64_t rank = 0;  // global rank with the highest peak
  Seconds seconds{0};
  Seconds exposed{0};         // of them: a copy between host and device runs, and nothing else does
  Bytes stored{0};            // read or written by one rank
  bool storage_known = true;  // whether `seconds` include reading or writing them
  Bytes device_peak{0};       // allocated
  Bytes device_reserved{0};   // highest while it lasts, by replay: the likely value
  Bytes device_bound{0};      // the same with the margins that the decision goes by (reserve_margin.hpp)
  Bytes device_upper{0};      // device_peak and all of `uncertainty`
  Bytes allocated_after{0};
  Bytes reserved_after{0};
  std::vector<LifeTerm> terms;    // of `rank` at its peak, largest first; they add up to device_peak
  std::vector<Term> uncertainty;  // what may come on top of device_peak
  HostTotals host;
};

struct CurvePoint {
  Seconds at{0};  // in the step
  Bytes bytes{0};
};

struct Life {
  std::vector<LifePhase> phases;  // in the order of life; what is `later` comes last
  std::vector<CurvePoint> curve;  // live bytes of a steady step, at most 2,000 points, every high and low that matters
  std::int64_t curve_rank = 0;
  std::int64_t curve_micro_batches = 0;  // that the curve shows; the others repeat the middle ones
  std::vector<std::string> host_limits;  // what stands against pinning that much
};

/// `answer`: of this candidate (evaluate()). Same preconditions as evaluate().
Life life_of(const Job& job, const Answer& answer);

/// Live bytes at most `most` points, each stretch of time with its highest and lowest.
std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& curve, std::size_t most);

}  // namespace ebb
