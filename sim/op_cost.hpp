// OpCost: how long an op takes once it may start, without waiting and without sharing a link.
//
//   allocate, release     0
//   host_wait             calls.synchronize, after the waiting itself
//   copy_h2d, copy_d2h    host_link.latency * calls; then the bytes flow (copy_engines.hpp), which is not counted here
//   kernel                launch + max(bytes / rate, (calls - 1) * launch): launches queue up behind a long kernel
//                         (roofline of memory-bound work). rate: gpu.adam, gpu.adam_foreach, otherwise gpu.hbm. `bytes`
//                         is what the kernel must move: 28 per element of fp32 Adam
//   compute               op.duration
//   host_work             calls * (calls.chunk | calls.tensor_scan | calls.launch); host Adam: bytes / (host.cpu_adam /
//                         ranks_per_host)
//   collective            NCCL's latency, then the transfer (collective_cost.hpp); collective() tells them apart
#pragma once

#include "models/cluster.hpp"
#include "models/errors.hpp"
#include "models/plan.hpp"
#include "sim/collective_cost.hpp"
#include "sim/simulate.hpp"

namespace ebb::sim {

/// The longest single op: 11 days, a ninth of what Ticks can count.
inline constexpr Ticks kLongestOp{1'000'000'000'000'000'000};

/// The error of a job or cluster whose step takes longer than time is counted here.
InputError too_long();

/// A cluster's figures in ticks, so that an op costs a few multiplications. A figure that no op of a plan uses may be
/// 0.
class OpCost {
 public:
  OpCost() = default;
  /// Precondition: ranks_per_host >= 1.
  OpCost(const Cluster& cluster, const Sharing& sharing);

  /// Rounded to the nearest tick. A result below 0 or not a number is a bug in the inputs' checks, one above kLongestOp
  /// too_long().
  Ticks operator()(const Op& op) const;

  /// Of a collective: its latency and, apart from it, the transfer, which may be slowed down by what else is on the
  /// way.
  CollectiveTime collective(const Op& op) const { return collective_(op); }

 private:
  double kernel(const Op& op) const;
  double host_work(const Op& op) const;

  double copy_latency_ = 0;  // ticks
  double synchronize_ = 0;
  double launch_ = 0;
  double chunk_ = 0;
  double tensor_scan_ = 0;
  double adam_ = 0;  // ticks per byte
  double adam_foreach_ = 0;
  double hbm_ = 0;
  double cpu_adam_ = 0;
  CollectiveCost collective_;
};

}  // namespace ebb::sim
