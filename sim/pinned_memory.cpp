#include "sim/pinned_memory.hpp"

#include <algorithm>

#include "models/errors.hpp"
#include "models/memory/torch_allocator.hpp"
#include "models/quantity_text.hpp"

namespace ebb::sim {

namespace {

/// The smallest single registration that failed (510 GiB passed), with 4 KiB pages and driver r580 or newer.
/// Source: https://github.com/xcena-dev/maru/pull/64.
constexpr Bytes kLargestRegistration = 512_GiB;

/// WSL2 pins less than a tenth of what is free: 500 MB in a container (https://github.com/microsoft/WSL/issues/14078),
/// 0.75 to 1.0 GiB on a host of 62.8 GiB (https://github.com/FlashML-org/FreeToken/pull/233). The smaller is taken.
constexpr Bytes kWsl2Pinned{500'000'000};

}  // namespace

void PinnedLayout::add(Bytes block, PinnedRounding rounding, std::int64_t count) {
  if (block.value <= 0) return;
  const Bytes takes = rounding == PinnedRounding::exact ? block : memory::pinned_block_bytes(block);
  asked += block * count;
  held += takes * count;
  largest = std::max(largest, takes);
  calls += count;
}

PinnedLayout& PinnedLayout::operator+=(const PinnedLayout& other) {
  asked += other.asked;
  held += other.held;
  largest = std::max(largest, other.largest);
  calls += other.calls;
  return *this;
}

PinnedLayout pinned_layout(std::span<const Bytes> blocks, PinnedRounding rounding) {
  PinnedLayout layout;
  for (const Bytes block : blocks) layout.add(block, rounding);
  return layout;
}

Seconds pin_time(const PinnedLayout& layout, const Host& host) {
  const double gib = static_cast<double>(layout.held.value) / static_cast<double>(Bytes{1_GiB}.value);
  return {gib * host.pin_seconds_per_gib.value + static_cast<double>(layout.calls) * host.pin_call.value.value};
}

std::vector<Bytes> bytes_per_node(std::span<const Bytes> held, const Cluster& cluster) {
  const std::int64_t nodes = cluster.host.sockets;
  EBB_ASSERT(nodes >= 1 && static_cast<std::int64_t>(held.size()) <= cluster.gpus_per_host);
  std::vector<Bytes> totals(static_cast<std::size_t>(nodes), Bytes{0});
  for (std::size_t gpu = 0; gpu < held.size(); ++gpu) {
    const auto near = static_cast<std::size_t>(socket_of(cluster, static_cast<std::int64_t>(gpu)));
    const double remote = nodes == 1 ? 0.0 : cluster.topology.remote_memory.value;
    const auto away = static_cast<std::int64_t>(remote * static_cast<double>(held[gpu].value));
    const Bytes each{nodes == 1 ? 0 : away / (nodes - 1)};
    for (Bytes& total : totals) total += each;
    totals[near] += held[gpu] - each * nodes;
  }
  return totals;
}

std::vector<std::string> pinned_limits(std::span<const PinnedLayout> ranks, const Cluster& cluster,
                                       const PinnedEnvironment& environment) {
  std::vector<std::string> violated;
  PinnedLayout all;
  std::vector<Bytes> held;
  for (const PinnedLayout& rank : ranks) {
    all += rank;
    held.push_back(rank.held);
  }
  if (all.largest >= kLargestRegistration) {
    violated.push_back("one pinned block of " + format_bytes(all.largest) + ": a registration of " +
                       format_bytes(kLargestRegistration) + " or more fails; split it into smaller blocks");
  }
  if (environment.wsl2 && all.held > kWsl2Pinned) {
    violated.push_back(format_bytes(all.held) + " pinned under WSL2, which may refuse more than " +
                       format_bytes(kWsl2Pinned) + " whatever is free; train on Linux itself, or offload less");
  }
  if (all.held > cluster.host.memory.value) {
    violated.push_back(format_bytes(all.held) + " pinned on a host of " + format_bytes(cluster.host.memory.value) +
                       "; offload a fraction, or pin exact bytes (" + format_bytes(all.asked) + ")");
  }
  if (!environment.bound) return violated;
  const Bytes room{cluster.host.memory.value.value / cluster.host.sockets};
  const std::vector<Bytes> nodes = bytes_per_node(held, cluster);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (nodes[node] <= room) continue;
    violated.push_back(format_bytes(nodes[node]) + " pinned on NUMA node " + std::to_string(node) + ", which has " +
                       format_bytes(room) + "; let pages spill (numactl --preferred), interleave, or offload less");
  }
  return violated;
}

}  // namespace ebb::sim
