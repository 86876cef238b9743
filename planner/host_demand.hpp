// What must fit into a host's memory: the highest sum of pinned and pageable bytes over the phases of the job's own
// life, on the host that needs most. It is the one figure that `--host-budget`, `ebb fit --min host-memory` and `ebb
// doctor` go by (docs/numbers.md, "host memory").
//
// Pinned memory lies beside its GPU, on the socket that the GPU hangs on, but for the part that the cluster says lies
// on another (topology.remote_memory). A job that uses some of a host's GPUs may fill their socket while the other is
// empty. What then lands there crosses the sockets at every copy, or is refused where memory is bound: a budget of its
// own. Every socket has the same part of the host's memory.
//
// Not here: what life_host.hpp leaves out, and the load of a resume that the job does not begin with.
#pragma once

#include <span>

#include "models/plan.hpp"
#include "planner/hosts.hpp"
#include "planner/lower.hpp"

namespace ebb {

struct HostDemand {
  Bytes pinned_per_rank{0};    // max over ranks
  Bytes pinned_per_host{0};    // max over hosts, once everything is pinned
  Bytes pinned_per_socket{0};  // max over sockets, likewise
  Bytes per_host{0};           // what must fit
  Phase decides = Phase::step;
};

/// `start`: what the job's life begins with. Chunk sizes and slots do not matter.
HostDemand host_demand(const Job& job, const HostSet& hosts, std::span<const RankModel> ranks,
                       const Candidate& candidate, Start start);

}  // namespace ebb
