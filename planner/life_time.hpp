// How long the phases of a life take, and for how much of that a copy of state is all that happens.
#pragma once

#include <vector>

#include "models/timeline.hpp"
#include "planner/lower.hpp"

namespace ebb {

struct PhaseTime {
  Seconds seconds{0};
  Seconds exposed{0};
  bool storage_known = true;
};

/// In each phase of the step: the time in which a copy between host and device runs and no kernel, collective or
/// forward or backward computation does. In order of StepSummary::phases.
std::vector<Seconds> exposed_transfer(const Plan& plan, const Timeline& timeline, const StepSummary& summary);

/// Building the optimizer: pinning, masters on their way to the host.
PhaseTime init_time(const RankModel& rank, const Candidate& candidate);
/// A checkpoint's load and what it moves; `stored`: bytes that this rank reads, while `ranks` of its host do so, too.
PhaseTime load_time(const RankModel& rank, const Candidate& candidate, Start start, Bytes stored, std::int64_t ranks);
/// A save; `stored`: bytes that this rank writes.
PhaseTime save_time(const RankModel& rank, const Candidate& candidate, Bytes stored, std::int64_t ranks);

/// The part of a steady step's traffic that the first step has: without moments to bring in, unless a load brought
/// them.
double first_step_traffic(const RankModel& rank, const Candidate& candidate);

}  // namespace ebb
