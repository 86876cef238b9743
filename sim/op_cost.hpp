// OpCost: how long an op takes once it may start, without waiting and without sharing a link; and what the host thread
// pays to issue it.
//
//   allocate, release     0
//   host_wait             calls.synchronize, after the waiting itself
//   copy_h2d, copy_d2h    host_link.latency * calls; then the bytes flow (flow_engine.hpp), which is not counted here
//   kernel                gpu.kernel_floor + bytes / rate (memory-bound work). rate: gpu.adam, gpu.adam_foreach,
//                         otherwise gpu.hbm. `bytes` is what the kernel must move: 28 per element of fp32 Adam
//   compute               op.duration
//   host_work             a framework's (chunk_overhead, tensor_scan): op.duration where the plan carries one, since a
//                         replay spins for that long; otherwise calls * (calls.chunk | calls.tensor_scan). Launches:
//                         calls * calls.launch; host Adam: bytes / (host.cpu_adam / ranks_per_host); pinning: bytes *
//                         host.pin_seconds_per_gib + calls * host.pin_call; to and from a checkpoint: bytes /
//                         (storage.write | storage.read of the host / ranks_per_host), nothing where that is not known;
//                         masters made on the host: as host Adam
//   collective            NCCL's latency, then the transfer (collective_cost.hpp); collective() tells them apart
//
// To issue: one calls.launch a kernel launch, calls.copy a copy, calls.collective a collective, and calls.event for
// each op of another stream that it waits for (an event recorded there and waited for here). Stand-ins for forward and
// backward cost nothing: their duration holds their launches. An allocation costs calls.allocate a tensor; a release
// is counted there.
#pragma once

#include <algorithm>
#include <array>

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

/// The nearest tick. Below 0 or not a number is a bug, above kLongestOp too_long().
Ticks rounded_ticks(double ticks);

inline constexpr std::size_t kOpKinds = static_cast<std::size_t>(OpKind::host_wait) + 1;

/// What the host thread pays for an op: until its first call has returned, and its last.
struct Issue {
  Ticks first{0};
  Ticks all{0};
};

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

  /// Of a copy: what passes before its bytes flow.
  Ticks copy_latency(const Op& op) const { return times(latency_of_copy_, op.calls); }

  /// `events`: how many ops of other device streams it waits for.
  Issue issue(const Op& op, std::uint32_t events) const {
    const bool alone = op.kind == OpKind::collective && op.members <= 1;
    const Ticks call = alone ? Ticks{0} : issue_[static_cast<std::size_t>(op.kind)];
    const Ticks waits = times(issue_event_, events);
    return {waits + call, waits + times(call, std::max<std::uint32_t>(op.calls, 1))};
  }

  /// Of a kernel: what it takes beyond its bytes.
  Ticks kernel_floor() const { return kernel_floor_; }

  /// Whether others change how long it takes, so that it must run in the FlowEngine.
  bool shares(const Op& op) const {
    if (op.kind == OpKind::copy_h2d || op.kind == OpKind::copy_d2h) return true;
    if (op.kind == OpKind::collective) return op.members > 1;
    return op.kind == OpKind::kernel && (shared_kernels_ >> static_cast<unsigned>(op.work) & 1U) != 0;
  }
  /// Kernels of this work share HBM from now on.
  void share_kernels(Work work) { shared_kernels_ |= 1U << static_cast<unsigned>(work); }

 private:
  /// `calls` times `each`; too_long() above kLongestOp.
  static Ticks times(Ticks each, std::uint32_t calls) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(each.value, std::int64_t{calls}, &product) || product > kLongestOp.value)
      throw too_long();
    return {product};
  }
  double kernel(const Op& op) const;
  double host_work(const Op& op) const;

  std::uint32_t shared_kernels_ = 0;     // bit: Work
  std::array<Ticks, kOpKinds> issue_{};  // one call, by OpKind
  Ticks issue_event_{0};
  Ticks latency_of_copy_{0};
  Ticks kernel_floor_{0};
  double synchronize_ = 0;
  double launch_ = 0;
  double chunk_ = 0;
  double tensor_scan_ = 0;
  double adam_ = 0;  // ticks per byte
  double adam_foreach_ = 0;
  double hbm_ = 0;
  double cpu_adam_ = 0;
  double pin_ = 0;       // ticks per byte
  double pin_call_ = 0;  // ticks
  double store_ = 0;     // ticks per byte; 0 where the cluster has no rate
  double fetch_ = 0;
  CollectiveCost collective_;
};

}  // namespace ebb::sim
