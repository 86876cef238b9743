#include "sim/collective_cost.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "models/errors.hpp"
#include "models/units.hpp"

namespace ebb::sim {
namespace {

constexpr double kTicksPerMicro = static_cast<double>(kTicksPerSecond) / 1e6;

/// What a ring over PCIe reaches of the link: NCCL's protocol takes about 20 % (NVIDIA/nccl-tests issue 212).
constexpr double kPcieReach = 0.8;

constexpr PerProtocol<Protocol> kAllProtocols = {Protocol::ll, Protocol::ll128, Protocol::simple};

template <class Enum>
constexpr auto index(Enum e) {
  return static_cast<std::size_t>(e);
}

double gigabytes(BytesPerSecond rate) { return rate.value / 1e9; }
double micros(Seconds t) { return t.value * 1e6; }
int floor_log2(std::int64_t value) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value))) - 1; }

/// How often every byte goes around.
double passes(Work work) { return work == Work::all_reduce ? 2.0 : 1.0; }

double tree_correction(Bytes bytes, Protocol protocol) {
  const int entry = floor_log2(bytes.value >> 6);
  const auto& table = kTreeCorrection[index(protocol)];
  return entry >= 0 && entry < static_cast<int>(table.size()) ? table[static_cast<std::size_t>(entry)] : 1.0;
}

}  // namespace

CollectiveCost::CollectiveCost(const Cluster& cluster)
    : gpu_(nccl_gpu(cluster.gpu.name)),
      gpus_per_host_(cluster.gpus_per_host),
      nvlink_domain_(cluster.interconnect.nvlink_domain),
      nvlink_(gigabytes(cluster.interconnect.nvlink.value)),
      network_(gigabytes(cluster.interconnect.network.value)),
      floor_(micros(cluster.interconnect.collective_floor.value)) {
  const HostLink& link = cluster.host_link;
  pcie_ = kPcieReach * gigabytes(std::min({link.h2d.value, link.d2h.value, BytesPerSecond{link.both.value.value / 2}}));
  const auto scale = [](Seconds step, Transport transport) {
    return micros(step) / kStepLatency[index(transport)][index(Algorithm::ring)][index(Protocol::simple)];
  };
  const Seconds local = cluster.interconnect.nvlink_latency.value;
  step_scale_[index(Transport::nvlink)] = scale(local, Transport::nvlink);
  // The cluster has a figure for PCIe where that is what joins the "NVLink" domain.
  step_scale_[index(Transport::pcie)] = !gpu_.nvlink && nvlink_domain_ > 1 ? scale(local, Transport::pcie) : 1.0;
  step_scale_[index(Transport::network)] = scale(cluster.interconnect.network_latency.value, Transport::network);
}

CollectiveTime CollectiveCost::operator()(const Op& op) const {
  if (op.members <= 1) return {};
  const Group group = place(op);
  if (op.work == Work::all_to_all) return time(op, group, pairs(group));
  Way best;
  double least = 0;
  const auto consider = [&](const Way& way) {
    // NCCL knows no floor: it is not part of the choice.
    const double t = way.latency + static_cast<double>(op.bytes.value) / (1000 * way.bandwidth);
    if (best.bandwidth > 0 && t >= least) return;
    best = way;
    least = t;
  };
  for (const Protocol protocol : kAllProtocols) {
    if (protocol == Protocol::ll128 && !ll128(group)) continue;
    consider(ring(op, group, protocol));
    if (op.work == Work::all_reduce) consider(tree(op, group, protocol));
  }
  if (op.work != Work::all_reduce && group.alone()) consider(pat(group));
  return time(op, group, best);
}

CollectiveTime CollectiveCost::with(const Op& op, Algorithm algorithm, Protocol protocol) const {
  EBB_ASSERT(op.members > 1);
  const Group group = place(op);
  switch (algorithm) {
    case Algorithm::tree:
      return time(op, group, tree(op, group, protocol));
    case Algorithm::ring:
      return time(op, group, ring(op, group, protocol));
    case Algorithm::pat:
      return time(op, group, pat(group));
    case Algorithm::pairs:
      return time(op, group, pairs(group));
  }
  EBB_ASSERT(!"an algorithm");
}

CollectiveCost::Group CollectiveCost::place(const Op& op) const {
  EBB_ASSERT(op.domains >= 1 && op.domains <= op.members && op.stride >= 1);
  Group group{.members = static_cast<double>(op.members),
              .nodes = op.domains,
              .local = Transport::nvlink,
              .local_bus = nvlink_,
              .bus = 0};
  if (op.domains == 1) {
    if (!gpu_.nvlink) group.local = Transport::pcie;
  } else if (gpus_per_host_ > nvlink_domain_) {
    group.local = Transport::pcie;
    group.local_bus = pcie_;
    group.nodes = ceil_div(op.members, std::max<std::int64_t>(1, gpus_per_host_ / op.stride));
  }
  const double remote = network_ * group.per_node();
  group.bus = group.nodes == 1 ? group.local_bus : group.alone() ? remote : std::min(group.local_bus, remote);
  return group;
}

double CollectiveCost::step(Transport transport, Algorithm algorithm, Protocol protocol) const {
  return kStepLatency[index(transport)][index(algorithm)][index(protocol)] * step_scale_[index(transport)];
}

/// With one member a node nothing hides the network: NCCL then counts a tree's step for any algorithm.
double CollectiveCost::remote_step(const Group& group, Algorithm algorithm, Protocol protocol) const {
  return step(Transport::network, group.alone() ? Algorithm::tree : algorithm, protocol);
}

CollectiveCost::Way CollectiveCost::ring(const Op& op, const Group& group, Protocol protocol) const {
  const ArchitectureLimits& limits = kArchitectureLimits[index(gpu_.architecture)];
  double limit = group.bus;
  if (protocol == Protocol::ll) limit = std::min(ll_limit(group), group.bus / 2);
  if (protocol == Protocol::ll128) {
    limit = std::min(0.92 * group.bus, limits.channels * limits.ring_ll128[group.scale()]);
  }
  const double steps = passes(op.work) * (group.members - 1);
  const double hops = passes(op.work) * static_cast<double>(group.nodes - 1);
  double local = step(group.local, Algorithm::ring, protocol);
  if (group.nodes > 1) local = std::max(local, kNetworkOverhead[index(protocol)]);
  double latency = kBaseLatency[index(Algorithm::ring)][index(protocol)] + (steps - hops) * local +
                   hops * remote_step(group, Algorithm::ring, protocol);
  const bool plateau = protocol == Protocol::simple && group.nodes > 1 && op.work == Work::all_reduce &&
                       static_cast<double>(op.bytes.value) >= 64 * limits.channels * group.members;
  if (plateau) latency *= kRingPlateau;
  return {latency, limit * group.members / steps, Algorithm::ring, protocol};
}

CollectiveCost::Way CollectiveCost::tree(const Op& op, const Group& group, Protocol protocol) const {
  const ArchitectureLimits& limits = kArchitectureLimits[index(gpu_.architecture)];
  const std::size_t scale = group.scale();
  double limit = std::min(0.92 * group.bus, limits.channels * limits.tree[scale]);
  if (protocol == Protocol::ll) limit = std::min(limit / 3.8, ll_limit(group));
  if (protocol == Protocol::ll128) {
    limit = std::min(limit * (group.nodes == 1 ? 7.0 / 9 : 120.0 / 128), limits.channels * limits.tree_ll128[scale]);
  }
  const double chain = std::floor(group.per_node()) - 1;
  const double latency = kBaseLatency[index(Algorithm::tree)][index(protocol)] +
                         2 * (chain * step(group.local, Algorithm::tree, protocol) +
                              floor_log2(group.nodes) * remote_step(group, Algorithm::tree, protocol));
  return {latency, limit / 2 * tree_correction(op.bytes, protocol), Algorithm::tree, protocol};
}

CollectiveCost::Way CollectiveCost::pat(const Group& group) const {
  const double latency =
      kPatBaseLatency + kPatMemberLatency * group.members +
      floor_log2(group.nodes) * remote_step(group, Algorithm::pat, Protocol::simple) / kPatNetworkSpeedup;
  return {latency, 0.75 * group.bus, Algorithm::pat, Protocol::simple};
}

CollectiveCost::Way CollectiveCost::pairs(const Group& group) const {
  const double n = group.members;
  const double near = (group.per_node() - 1) / n;
  const double far = (n - group.per_node()) / n;
  // S / bandwidth = the slower of S near / local_bus and S far / network.
  double bandwidth = std::numeric_limits<double>::infinity();
  if (near > 0) bandwidth = group.local_bus / near;
  if (far > 0) bandwidth = std::min(bandwidth, network_ / far);
  const double hop = group.nodes == 1 ? step(group.local, Algorithm::ring, Protocol::simple)
                                      : remote_step(group, Algorithm::ring, Protocol::simple);
  return {kBaseLatency[index(Algorithm::ring)][index(Protocol::simple)] + hop, bandwidth, Algorithm::pairs,
          Protocol::simple};
}

/// Over several nodes NCCL goes by the CPU.
double CollectiveCost::ll_limit(const Group& group) const {
  return group.nodes == 1 ? kArchitectureLimits[index(gpu_.architecture)].ll : kLlLimitOfCpu[group.scale()];
}

/// LL128 relies on NVLink keeping 128-byte stores whole.
bool CollectiveCost::ll128(const Group& group) const {
  return gpu_.nvlink && (group.local == Transport::nvlink || group.alone());
}

CollectiveTime CollectiveCost::time(const Op& op, const Group& group, const Way& way) const {
  CollectiveTime t{.latency_ticks = std::max(way.latency, floor_) * kTicksPerMicro,
                   .algorithm = way.algorithm,
                   .protocol = way.protocol};
  EBB_ASSERT(op.bytes.value >= 0);
  if (op.bytes.value == 0) return t;
  const double bytes = static_cast<double>(op.bytes.value);
  t.transfer_ticks = bytes / (1000 * way.bandwidth) * kTicksPerMicro;
  const double sent = bytes * passes(op.work) * (group.members - 1) / group.members;
  t.wire_bytes_per_tick = sent / t.transfer_ticks;
  double outside = 0;  // part of `sent` that leaves over the host link
  if (group.local == Transport::pcie) {
    outside = 1;
  } else if (group.nodes > 1) {
    // A ring leaves a node once, over one of the links of its members; all pairs leave it but those inside.
    outside = way.algorithm == Algorithm::pairs ? (group.members - group.per_node()) / (group.members - 1)
                                                : 1 / group.per_node();
  }
  t.host_link_bytes_per_tick = outside * t.wire_bytes_per_tick;
  return t;
}

}  // namespace ebb::sim
