// TidalPieces: how tidal cuts one rank's state, and what of it is where between steps: what all parts of a job's life
// agree on. It states the rank's room for state over a step (from its frame and activation levels) and lets the solver
// (tide_schedule.hpp) place pieces in it.
//
// Owned elements, in optimizer order: [0, tail) live on the host, piece by piece; [tail, kept) are the last pieces that
// a step updates, which stay on the device and leave in the next forward; [kept, owned) never leave.
// Internal to lowering, but for what the planner says about a candidate (tidal_problem).
#pragma once

#include <vector>

#include "planner/activation_levels.hpp"
#include "planner/device_state.hpp"
#include "planner/lowerings.hpp"
#include "planner/owned_runs.hpp"
#include "planner/tide_schedule.hpp"

namespace ebb {

/// Buffers of what never leaves, and slots of the second pass over gathered FP8 weights.
inline constexpr StateNames kKeptNames{"kept moments", "kept master weights"};
inline constexpr int kTidalQuantizedSlots = 3;

/// What a rank's step leaves for state under a cap.
struct TidalRoom {
  Bytes cap;   // the candidate's, or its default
  Bytes peak;  // highest live bytes of forward and backward without any state
  Bytes step;  // live bytes while the optimizer steps, without any state
  TideProblem problem;
};

struct TidalPieces {
  Bytes cap;                    // every live byte of a step counts below it
  Numel numel{0};               // elements of a piece
  Bytes bytes;                  // of a piece's buffer
  std::vector<OwnedRun> moves;  // pieces in the order in which the step updates them; ascending, from element 0
  std::vector<Shard> kept;      // whole, but for the first, which may be cut
  ElementRange kept_range;
  ActivationLevels levels;
  TideSchedule schedule;

  Numel moved() const { return {kept_range.begin}; }
  Part kept_part() const { return {kept, kept_range}; }
  /// The first piece that stays on the device between steps; they are the last `schedule.tail`.
  std::size_t first_tail() const { return moves.size() - static_cast<std::size_t>(schedule.tail); }
  /// Elements whose home is the host between steps.
  ElementRange on_host() const { return {0, first_tail() == 0 ? 0 : moves[first_tail() - 1].range.end}; }
};

/// InputError where the cap is below what the rank takes with a single piece of state: it names both.
TidalRoom tidal_room(const RankModel& rank, const Candidate& candidate);
TidalPieces tidal_pieces(const RankModel& rank, const Candidate& candidate);

/// The buffer of a piece that stays, in all parts of a life that know it: in order of `TidalPieces::moves`.
BufferId tail_buffer(PlanBuilder& plan, const Precision& precision, const TidalPieces& pieces, std::size_t piece,
                     bool initial);

}  // namespace ebb
