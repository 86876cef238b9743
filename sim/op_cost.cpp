#include "sim/op_cost.hpp"

#include <algorithm>

#include "models/errors.hpp"

namespace ebb::sim {
namespace {

double in_ticks(Seconds t) { return t.value * static_cast<double>(kTicksPerSecond); }
double per_byte(BytesPerSecond rate) { return static_cast<double>(kTicksPerSecond) / rate.value; }

/// Bytes at a cost per byte. No bytes cost nothing even where the cluster has no rate (infinitely many ticks a byte).
double moving(Bytes bytes, double ticks_per_byte) {
  return bytes.value == 0 ? 0.0 : static_cast<double>(bytes.value) * ticks_per_byte;
}

}  // namespace

InputError too_long() {
  return InputError({}, "an operation of this step would take more than 11 days",
                    "check the batch, and the cluster's rates and latencies");
}

Ticks rounded_ticks(double ticks) {
  EBB_ASSERT(ticks >= 0);
  if (ticks > static_cast<double>(kLongestOp.value)) throw too_long();
  // Not std::llround: a library call an op, for the sake of the last bit just under a half.
  return {static_cast<std::int64_t>(ticks + 0.5)};  // NOLINT(bugprone-incorrect-roundings)
}

OpCost::OpCost(const Cluster& cluster, const Sharing& sharing)
    : issue_event_(rounded_ticks(in_ticks(cluster.calls.event.value))),
      latency_of_copy_(rounded_ticks(in_ticks(cluster.host_link.latency.value))),
      kernel_floor_(rounded_ticks(in_ticks(cluster.gpu.kernel_floor.value))),
      synchronize_(in_ticks(cluster.calls.synchronize.value)),
      launch_(in_ticks(cluster.calls.launch.value)),
      chunk_(in_ticks(cluster.calls.chunk.value)),
      tensor_scan_(in_ticks(cluster.calls.tensor_scan.value)),
      adam_(per_byte(cluster.gpu.adam.value)),
      adam_foreach_(per_byte(cluster.gpu.adam_foreach.value)),
      hbm_(per_byte(cluster.gpu.hbm.value)),
      cpu_adam_(per_byte(cluster.host.cpu_adam.value) * static_cast<double>(sharing.ranks_per_host)),
      pin_(cluster.host.pin_seconds_per_gib.value * static_cast<double>(kTicksPerSecond) / (1 << 30)),
      pin_call_(in_ticks(cluster.host.pin_call.value)),
      store_(per_byte(cluster.storage.write.value) * static_cast<double>(sharing.ranks_per_host)),
      fetch_(per_byte(cluster.storage.read.value) * static_cast<double>(sharing.ranks_per_host)),
      collective_(cluster) {
  const auto issue = [&](OpKind kind, Seconds call) {
    issue_[static_cast<std::size_t>(kind)] = rounded_ticks(in_ticks(call));
  };
  issue(OpKind::allocate, cluster.calls.allocate.value);
  issue(OpKind::kernel, cluster.calls.launch.value);
  issue(OpKind::copy_h2d, cluster.calls.copy.value);
  issue(OpKind::copy_d2h, cluster.calls.copy.value);
  issue(OpKind::collective, cluster.calls.collective.value);
  EBB_ASSERT(sharing.ranks_per_host >= 1);
}

Ticks OpCost::operator()(const Op& op) const {
  switch (op.kind) {
    case OpKind::allocate:
    case OpKind::release:
      return {0};
    case OpKind::copy_h2d:
    case OpKind::copy_d2h:
      return copy_latency(op);
    case OpKind::kernel:
      return rounded_ticks(kernel(op));
    case OpKind::collective:
      return rounded_ticks(collective_(op).ticks());
    case OpKind::compute:
      EBB_ASSERT(op.duration >= Ticks{0});
      if (op.duration > kLongestOp) throw too_long();
      return op.duration;
    case OpKind::host_work:
      return rounded_ticks(host_work(op));
    case OpKind::host_wait:
      return rounded_ticks(synchronize_);
  }
  EBB_ASSERT(!"an op kind");
}

double OpCost::kernel(const Op& op) const {
  double ticks_per_byte = hbm_;
  if (op.work == Work::adam) ticks_per_byte = adam_;
  if (op.work == Work::adam_foreach) ticks_per_byte = adam_foreach_;
  return static_cast<double>(kernel_floor_.value) + moving(op.bytes, ticks_per_byte);
}

double OpCost::host_work(const Op& op) const {
  EBB_ASSERT(op.duration >= Ticks{0});
  const auto framework = [&op](double a_call) {
    return op.duration > Ticks{0} ? static_cast<double>(op.duration.value) : a_call * op.calls;
  };
  switch (op.work) {
    case Work::chunk_overhead:
      return framework(chunk_);
    case Work::tensor_scan:
      return framework(tensor_scan_);
    case Work::launch:
      return launch_ * op.calls;
    case Work::cpu_adam:
      return moving(op.bytes, cpu_adam_);
    case Work::pin:
      return moving(op.bytes, pin_) + pin_call_ * op.calls;
    case Work::store:
      return moving(op.bytes, store_);
    case Work::fetch:
      return moving(op.bytes, fetch_);
    case Work::make_masters:  // one number read and one written, as fast as the host's Adam goes through memory
      return moving(op.bytes, cpu_adam_);
    default:
      EBB_ASSERT(!"host work");
  }
}

}  // namespace ebb::sim
