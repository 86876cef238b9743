// What tidal's lowering remembers with a rank: candidates share activation levels and frames, the parts of a life share
// pieces, and all ranks of a job share its default cap. From any thread. Internal to tidal_room.cpp and
// tidal_pieces.cpp.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "planner/activation_levels.hpp"
#include "planner/ranks.hpp"
#include "planner/tidal_pieces.hpp"

namespace ebb {

/// Live bytes of a step without state.
struct TidalFrame {
  Bytes start{0};             // before forward, gradients zeroed
  std::vector<Bytes> risen;   // by level, behind its allocation
  std::vector<Bytes> fallen;  // by level, behind its release
  Bytes step{0};              // highest, from finalize on
  Bytes peak{0};
};

/// Ranks of a stage have the same layers.
struct StageLevels {
  std::mutex mutex;
  std::optional<ActivationLevels> levels;
};

/// Default caps by the elements of a piece.
struct JobCaps {
  std::mutex mutex;
  const std::vector<RankModel>* ranks = nullptr;  // of the job
  std::unique_ptr<RankSet> own;                   // nobody has named them
  std::map<Numel, Bytes> caps;
};

struct TidalMemory {
  std::shared_ptr<StageLevels> stage = std::make_shared<StageLevels>();
  std::shared_ptr<JobCaps> job = std::make_shared<JobCaps>();
  std::mutex mutex;
  std::optional<TidalFrame> frame;
  std::map<Candidate, std::shared_ptr<const TidalPieces>> pieces;
};

}  // namespace ebb
