// TidalPieces: how tidal cuts one rank's state, and what of it is where between steps: what all parts of a job's life
// agree on. The solver (tide_schedule.hpp) places them in the room that the rank's step leaves (tidal_room.hpp).
//
// Owned elements, in optimizer order: first those that live on the host between steps, piece by piece; then the pieces
// that stay on the device behind a step and leave in the next forward; then what is kept and never leaves. Which piece
// is updated when is another order, the schedule's: pieces are alike, so elements are given to them as it suits.
// Internal to lowering.
#pragma once

#include <memory>
#include <vector>

#include "planner/activation_levels.hpp"
#include "planner/device_state.hpp"
#include "planner/lowerings.hpp"
#include "planner/owned_runs.hpp"
#include "planner/tidal_room.hpp"

namespace ebb {

/// Buffers of what never leaves, and slots of the second pass over gathered FP8 weights.
inline constexpr StateNames kKeptNames{"kept moments", "kept master weights"};
inline constexpr int kTidalQuantizedSlots = 3;

/// A piece that moves.
struct TidalPiece {
  OwnedRun run;
  std::uint32_t chunk = 0;  // its number in the order of elements
  bool arrives = false;     // before the step
  bool stays = false;       // behind the step
};

struct TidalPieces {
  TidalRoom room;                 // every live byte of a step counts below its cap
  Numel numel{0};                 // elements of a piece
  Bytes bytes;                    // of a piece's buffer
  Ticks copy_out{1};              // of a piece, alone on its link
  std::vector<TidalPiece> moves;  // in the order in which the step updates them
  std::uint32_t first_tail = 0;   // the chunk from which on pieces stay
  ElementRange on_host;           // elements whose home is the host between steps
  ElementRange kept;
  ActivationLevels levels;
  TideSchedule schedule;

  Numel moved() const { return {kept.begin}; }
};

/// Worked out once for each candidate and remembered with the rank; from any thread. InputError as tidal_room.
std::shared_ptr<const TidalPieces> tidal_pieces(const RankModel& rank, const Candidate& candidate);

/// The buffer of a piece that stays, in all parts of a life that know it.
BufferId tail_buffer(PlanBuilder& plan, const Precision& precision, const TidalPieces& pieces, const TidalPiece& piece,
                     bool initial);

/// The rank's shards over `range`, the first and last of which may be cut.
std::vector<Shard> cut_shards(const RankModel& rank, ElementRange range);

}  // namespace ebb
