// LifeReplay: an AllocationTrace of a whole life replayed through the model of torch's caching allocator, part by part,
// with what is alive at each part's peak. Beside reserved.hpp, which does the same for thousands of candidates and
// keeps totals only.
#pragma once

#include <array>
#include <vector>

#include "planner/allocation_trace.hpp"
#include "planner/reserved.hpp"

namespace ebb {

/// Live bytes by MemoryTerm, as the allocator counts them.
using BytesByTerm = std::array<Bytes, kMemoryTerms>;

struct PartMemory {
  Phase phase = Phase::init;  // of a part, or of forward, backward, finalize and step inside the steady one
  Bytes began_with{0};        // allocated
  Bytes peak_allocated{0};
  Bytes peak_reserved{0};
  Bytes allocated{0};  // at the end
  Bytes reserved{0};
  BytesByTerm at_peak{};  // adds up to peak_allocated
};

/// Live bytes after an event of the steady step.
struct LivePoint {
  std::uint32_t event = 0;
  Bytes bytes{0};
};

struct LifeMemory {
  std::vector<PartMemory> parts;  // init, [load], first_step, forward, backward, finalize, step, skip, save
  std::vector<LivePoint> steady;  // of the settled step: after every event that changes the live bytes
  std::int64_t retries = 0;       // how often the device was full and the cache was given back
  bool within_capacity = true;    // false: it does not fit, and this is what it would take
};

/// The steady step is repeated until reserved memory does not change any more; the steps between skip and save do not
/// appear. Where the trace does not fit into `capacity`, as on a device without a limit.
LifeMemory replay_life(const AllocationTrace& trace, Bytes capacity, const ReservedOptions& options = {});

}  // namespace ebb
