// When the storage of each device buffer is taken, in positions of the compute stream: what an arena may overlay.
//
// Allocations and releases are ops of the compute stream, and whoever gets storage uses it after its allocation. So the
// storage of buffer a may become b's when everything that touched a has ended before b's allocation starts. Up to a's
// release the plan orders all uses before it; a release with `after` x leaves x open, and then it is the first op of
// the compute stream that is ordered behind x from which on the storage is free.
//   e(i) = the first position on the compute stream that starts after op i has ended
//        = min over what directly follows i (next on its stream, ops that depend on it) of
//          its own position if it is on the compute stream, else its e.
// One pass backwards, O(ops + deps): follows the definition of order in plan.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "models/plan.hpp"

namespace ebb::replay {

/// Positions on the compute stream, 0 .. length - 1; both ends belong to it.
struct DeviceLife {
  std::int64_t first = 0;
  std::int64_t last = 0;

  bool operator==(const DeviceLife&) const = default;
};

/// e(i) by op id; the number of ops of the compute streams where nothing follows. Positions count the ops of all
/// streams of kind compute (a plan has one).
std::vector<std::int64_t> next_on_compute(const Plan& plan);

/// By buffer, its lives in order; host buffers have none. A life that begins before the storage of the one before it is
/// free (a release's `after`) may begin before that one's last position. InputError for an allocation or release that
/// is on another stream.
std::vector<std::vector<DeviceLife>> device_lives(const Plan& plan);

}  // namespace ebb::replay
