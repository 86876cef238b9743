// Runs: the pieces of arrays that one launch works on.
//
// Why: a training rank's shards lie in hundreds of separate pieces, and a launch for each would drain the GPU between
// them. A launch takes any number of runs; the table travels in the kernel's parameters (up to 512 runs a launch, the
// rest in further launches), so no device memory holds it and the caller may drop it when the launcher returns.
// Offsets are in bytes and must suit the element type; any alignment beyond that is correct. Kernels are fastest where
// all arrays of a run start at the same element modulo 4 (as equal element offsets into aligned arrays do). Runs of one
// launch must not overlap. numel 0 is allowed.
#pragma once

#include <cstdint>

namespace ebb::kernels {

/// `numel` elements, `offset` bytes after the array's base. `index` is what the element means to its owner (its place
/// in the padded parameter buffer, say): digests and random fills depend on it and not on the address.
struct Run {
  std::int64_t offset = 0;
  std::int64_t index = 0;
  std::int64_t numel = 0;
};

struct CastRun {
  std::int64_t source = 0;       // bytes after the source's base
  std::int64_t destination = 0;  // bytes after the destination's base
  std::int64_t numel = 0;
};

}  // namespace ebb::kernels
