// What lies in host memory in each phase of a job's life: pinned and pageable, of a rank, of a host, of a NUMA node.
//
// Pinned memory grows until the second step (first_step.hpp) and then stays. Pageable memory comes and goes: bf16
// originals of FP8 weights until masters are made from them, what a checkpoint is read through, and what a save copies
// off the device before it writes.
//
// How much a save copies. torch_dist, dp_reshardable: each rank the part it owns, unless that lies on the host already.
// fully_reshardable: every rank of a sharding group gathers the group's whole state, fp32, in buffers on the host (with
// --distrib-optim-fully-reshardable-mem-efficient its first rank alone). The legacy torch format gathers it on the
// first rank. Sources: Megatron-LM main, core/optimizer/distrib_optimizer.py (get_parameter_state_dp_zero,
// sharded_param_state_fully_reshardable), Transformer Engine module/base.py (preserve_high_precision_init_val).
// Measured: saving 24 GB of one H200's state took 25.8 GiB of host memory on top.
//
// Not here: Python, libraries and data loading, a few GB a process.
#pragma once

#include <span>
#include <vector>

#include "models/plan.hpp"
#include "planner/host_parts.hpp"
#include "planner/hosts.hpp"
#include "planner/lower.hpp"
#include "sim/pinned_memory.hpp"

namespace ebb {

struct HostUse {
  sim::PinnedLayout pinned;
  Bytes pageable{0};
};
/// What a candidate makes of a rank, the same in every phase.
struct HostShare {
  Policy policy = Policy::resident;
  HostParts parts;
  Numel on_device{0};  // owned elements whose state lies on the device when a save begins
};
HostShare host_share(const RankModel& model, const Candidate& candidate);

/// Of global rank `rank`, which does the same as `model`. `start`: what the job's life began with.
HostUse host_use(const RankModel& model, const HostShare& share, std::int64_t rank, Phase phase, Start start);
HostUse host_use(const RankModel& model, std::int64_t rank, const Candidate& candidate, Phase phase, Start start);

/// Bytes that the rank writes into a checkpoint or reads from it. `optimizer`: with optimizer state.
Bytes stored_bytes(const RankModel& model, std::int64_t rank, bool optimizer);

/// Bytes that a save copies from the device to the host.
Bytes bytes_from_device(const RankModel& model, std::int64_t rank, const Candidate& candidate);

struct HostTotals {
  Bytes pinned{0};  // of one rank, max over ranks
  Bytes pageable{0};
  Bytes pinned_per_host{0};    // max over hosts
  Bytes pageable_per_host{0};  // beside pinned_per_host at most, so that both together are the most that a host holds
  std::vector<Bytes> pinned_per_node;  // of the host that pins most
};
HostTotals host_totals(const Job& job, const HostSet& hosts, std::span<const RankModel> ranks,
                       const Candidate& candidate, Phase phase, Start start);

/// What stands against pinning that much on the host that pins most (sim::pinned_limits).
std::vector<std::string> host_limits(const Job& job, const HostSet& hosts, std::span<const RankModel> ranks,
                                     const Candidate& candidate);

}  // namespace ebb
