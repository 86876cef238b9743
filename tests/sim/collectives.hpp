// Collectives of a cluster of H100, for the tests of their cost.
#pragma once

#include <cstdint>

#include "models/cluster.hpp"
#include "models/plan.hpp"
#include "sim/collective_cost.hpp"
#include "tests/sim/plan_builder.hpp"

namespace ebb::test {

inline constexpr std::int64_t kMiB = 1 << 20;
inline constexpr std::int64_t kGiB = 1 << 30;

/// Eight Hopper GPUs a host; 360 GB/s is what rings reach on H100 (NVIDIA/nccl-tests issue 326).
inline Cluster hopper(double bus = 360e9) {
  Cluster c;
  c.gpus_per_host = 8;
  c.gpu.name = "NVIDIA H100 80GB HBM3";
  c.host_link.h2d.value = c.host_link.d2h.value = {55e9};
  c.host_link.both.value = {100e9};
  c.interconnect.nvlink.value = {bus};
  c.interconnect.nvlink_latency.value = {3.4e-6};
  c.interconnect.network.value = {50e9};
  c.interconnect.network_latency.value = {14e-6};
  c.interconnect.nvlink_domain = 8;
  return c;
}

inline Op collective(Work work, std::int64_t bytes, std::uint32_t members, std::uint32_t domains = 1,
                     std::uint32_t stride = 1) {
  Op op = PlanBuilder::op(OpKind::collective, {0}, work);
  op.bytes = {bytes};
  op.members = members;
  op.domains = domains;
  op.stride = stride;
  return op;
}

inline double micros(const sim::CollectiveTime& t) { return t.ticks() / 1e6; }

}  // namespace ebb::test
