// RankLife: one rank of a life (life.hpp) on its GPU, on a host thread of its own: one part after another over one set
// of memory, streams, events and communicators.
//
// As run_rank(): whatever can fail on one rank alone comes first; then all meet. They meet again before every part, and
// in a save when all files are on the disk, before the first commits. A checkpoint is opened and looked at once a
// process, by every rank against its own parameters, before any byte of state changes. An error on one rank stops all.
// Not here: a part's ops (issuer.hpp), which process has which ranks (run_setup.hpp).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "replay/life.hpp"
#include "replay/life_shared.hpp"

namespace ebb::replay {

struct RankLifeRecord {
  LifeNumbers numbers;
  std::vector<std::string> remarks;
};

/// The body of the thread. Throws what went wrong, after stop(); Stopped when another rank failed. `index`: of the rank
/// in this process.
RankLifeRecord run_rank_life(const LifeRank& rank, std::size_t index, const RankPlace& place, LifeShared& shared);

}  // namespace ebb::replay
