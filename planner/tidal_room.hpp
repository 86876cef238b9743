// The room that one rank's step leaves for tidal's state under a cap, and the cap where a candidate names none.
// Internal to lowering, but for what the planner says about a candidate.
#pragma once

#include <memory>
#include <vector>

#include "planner/lower.hpp"
#include "planner/step_frame.hpp"
#include "planner/tide_schedule.hpp"

namespace ebb {

struct TidalRoom {
  Bytes cap;   // the candidate's, or the job's default
  Bytes peak;  // highest live bytes of forward and backward without any state
  Bytes step;  // live bytes while the optimizer steps, without any state
  TideProblem problem;
};

/// InputError where the cap is below what the rank takes with a single piece of state: it names both.
TidalRoom tidal_room(const RankModel& rank, const Candidate& candidate);
/// Of the ranks' stage: worked out once.
const ActivationLevels& tidal_levels(const RankModel& rank);
/// The frame of a tidal step, cut at these levels.
FrameOptions tidal_frame(const RankModel& rank, const ActivationLevels& levels);

/// Of a rank of its own, or of one more rank of a stage.
std::shared_ptr<TidalMemory> make_tidal_memory(const TidalMemory* same_stage = nullptr);
/// These are all distinct ranks of their job and outlive every use of it: its default cap is theirs. Without this call
/// a rank finds the others out itself.
void share_tidal_cap(const std::vector<RankModel>& ranks);
/// `rank` belongs to the same job as `known`.
void share_tidal_cap(const RankModel& rank, const RankModel& known);

}  // namespace ebb
