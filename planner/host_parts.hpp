// What a policy keeps in host memory, part by part: one pinned tensor a shard and state, as torch's pinned allocator
// rounds it, or one exact region for Ebb's own runtime. The parts are pinned at different times (first_step.hpp); their
// sum is host_bytes() (lower.hpp).
#pragma once

#include "planner/lower.hpp"
#include "sim/pinned_memory.hpp"

namespace ebb {

struct HostParts {
  sim::PinnedLayout masters;
  sim::PinnedLayout moments;
  sim::PinnedLayout grads;
  sim::PinnedLayout region;  // all state of Ebb's own runtime, packed
  Bytes pageable{0};         // the moments of a host Adam
};
HostParts host_parts(const RankModel& rank, const Candidate& candidate);

}  // namespace ebb
