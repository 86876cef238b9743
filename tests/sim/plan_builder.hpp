// PlanBuilder: short plans for tests and benchmarks, op by op, and a cluster with the figures of one measured H200
// host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "models/cluster.hpp"
#include "models/plan.hpp"

namespace ebb::test {

class PlanBuilder {
 public:
  StreamId stream(StreamKind kind) {
    plan_.streams.push_back({.name = "stream", .kind = kind});
    return {static_cast<std::uint32_t>(plan_.streams.size() - 1)};
  }

  BufferId buffer(Bytes bytes, Memory memory = Memory::device, bool initial = false) {
    plan_.buffers.push_back({.name = "b", .memory = memory, .bytes = bytes, .initial = initial});
    return {static_cast<std::uint32_t>(plan_.buffers.size() - 1)};
  }

  OpId add(Op op, std::span<const OpId> deps) {
    op.deps_begin = static_cast<std::uint32_t>(plan_.deps.size());
    op.deps_count = static_cast<std::uint32_t>(deps.size());
    plan_.deps.insert(plan_.deps.end(), deps.begin(), deps.end());
    plan_.ops.push_back(op);
    return {static_cast<std::uint32_t>(plan_.ops.size() - 1)};
  }
  OpId add(const Op& op, std::initializer_list<OpId> deps = {}) {
    return add(op, std::span(deps.begin(), deps.size()));
  }

  /// An op of `kind` in the step phase, the rest at its defaults.
  static Op op(OpKind kind, StreamId stream, Work work = Work::none) {
    Op op;
    op.kind = kind;
    op.phase = Phase::step;
    op.work = work;
    op.stream = stream;
    return op;
  }

  using Deps = std::initializer_list<OpId>;

  OpId copy(OpKind kind, StreamId stream, std::int64_t bytes, Deps deps = {}, std::uint32_t calls = 1) {
    Op copy = op(kind, stream);
    copy.calls = calls;
    copy.bytes = {bytes};
    return add(copy, deps);
  }
  OpId h2d(StreamId stream, std::int64_t bytes, Deps deps = {}, std::uint32_t calls = 1) {
    return copy(OpKind::copy_h2d, stream, bytes, deps, calls);
  }
  OpId d2h(StreamId stream, std::int64_t bytes, Deps deps = {}, std::uint32_t calls = 1) {
    return copy(OpKind::copy_d2h, stream, bytes, deps, calls);
  }
  OpId adam(StreamId stream, std::int64_t elements, Deps deps = {}) {
    Op adam = op(OpKind::kernel, stream, Work::adam);
    adam.bytes = {28 * elements};
    return add(adam, deps);
  }
  OpId compute(StreamId stream, Ticks duration, Deps deps = {}, Phase phase = Phase::step) {
    Op compute = op(OpKind::compute, stream);
    compute.phase = phase;
    compute.duration = duration;
    return add(compute, deps);
  }
  OpId host(StreamId stream, Work work, std::uint32_t calls = 1, Deps deps = {}) {
    Op host = op(OpKind::host_work, stream, work);
    host.calls = calls;
    return add(host, deps);
  }
  OpId allocate(StreamId stream, BufferId buffer, Deps deps = {}, Phase phase = Phase::step) {
    Op allocate = op(OpKind::allocate, stream);
    allocate.phase = phase;
    allocate.buffer = buffer;
    return add(allocate, deps);
  }
  OpId release(StreamId stream, BufferId buffer, OpId after = OpId::none(), Deps deps = {}, Phase phase = Phase::step) {
    Op release = op(OpKind::release, stream);
    release.phase = phase;
    release.buffer = buffer;
    release.after = after;
    return add(release, deps);
  }

  Plan take() { return std::move(plan_); }

 private:
  Plan plan_;
};

/// In, Adam, out for each chunk of `chunk` elements of `total`, 12 bytes an element each way in three arrays, through
/// `slots` device windows: a chunk comes in once the chunk `slots` before it has left. Op ids: 3c, 3c + 1, 3c + 2.
inline Plan chunked_step(std::int64_t total, std::int64_t chunk, int slots) {
  PlanBuilder b;
  const StreamId in = b.stream(StreamKind::h2d);
  const StreamId compute = b.stream(StreamKind::compute);
  const StreamId out = b.stream(StreamKind::d2h);
  std::vector<OpId> left;
  for (std::int64_t first = 0; first < total; first += chunk) {
    const std::int64_t n = std::min(chunk, total - first);
    const auto slot_user = static_cast<std::int64_t>(left.size()) - slots;
    const OpId arrived =
        slot_user >= 0 ? b.h2d(in, 12 * n, {left[static_cast<std::size_t>(slot_user)]}, 3) : b.h2d(in, 12 * n, {}, 3);
    const OpId updated = b.adam(compute, n, {arrived});
    left.push_back(b.d2h(out, 12 * n, {updated}, 3));
  }
  return b.take();
}

/// One H200 with a Xeon host, driver 580.159, measured 2026-11-30 (tests/data/measured/README.md).
inline Cluster h200_host() {
  Cluster c;
  c.name = "one H200";
  c.gpus_per_host = 1;
  c.gpu.hbm.value = {4.26e12};
  c.gpu.adam.value = {3.97e12};
  c.gpu.adam_foreach.value = {1.26e12};
  c.host_link.h2d.value = {55.3e9};
  c.host_link.d2h.value = {55.3e9};
  c.host_link.both.value = {97.7e9};
  c.host_link.d2h_weight.value = 1.0;
  c.host_link.host_one_way.value = {105.1e9};
  c.host_link.host_both.value = {137.35e9};
  c.host_link.latency.value = {2.8e-6};
  c.host.cpu_adam.value = {100e9};
  c.calls.launch.value = {3.4e-6};
  c.calls.copy.value = {2.2e-6};
  c.calls.synchronize.value = {5e-6};
  c.calls.chunk.value = {1e-4};
  c.calls.tensor_scan.value = {1e-6};
  c.interconnect.nvlink.value = {270e9};
  c.interconnect.nvlink_latency.value = {3.4e-6};
  c.interconnect.network.value = {50e9};
  c.interconnect.network_latency.value = {14e-6};
  return c;
}

/// The same with a host thread that issues in no time, so that closed forms need not count calls.
inline Cluster issues_at_once(Cluster c) {
  c.calls.launch.value = c.calls.copy.value = c.calls.event.value = {0};
  c.calls.collective.value = c.calls.allocate.value = {0};
  return c;
}

/// The same without any latency or call cost: pure rates.
inline Cluster rates_only() {
  Cluster c = issues_at_once(h200_host());
  c.host_link.latency.value = {0};
  c.calls.synchronize.value = {0};
  c.calls.chunk.value = {0};
  c.calls.tensor_scan.value = {0};
  c.interconnect.nvlink_latency.value = {0};
  c.interconnect.network_latency.value = {0};
  return c;
}

}  // namespace ebb::test
