// LinkReference: how fast this host's link carries copies of a plan's slots in both directions at once, measured in the
// same run over the same pinned memory: the mark that a pipelined step is held against.
//
// The same number of copies each way, each of a whole slot, on two streams that wait for nothing: one way walks through
// the host store, the other follows two places behind, as a pipeline does. The rate is all bytes over the time until
// both are done. Not here: what limits it (the planner's cluster has figures for that).
#pragma once

#include <optional>

#include "models/units.hpp"
#include "replay/host_store.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

struct LinkReference {
  Bytes copy{0};  // bytes of one copy
  BytesPerSecond rate;
};

/// Median of three passes on the current device; nothing for plans without packed slots, or where the device has no
/// room for four more of them. Overwrites the host store. CudaError.
std::optional<LinkReference> measure_link(const Program& program, const HostStore& store);

}  // namespace ebb::replay
