// Pinned host memory: what a list of blocks really takes, where it lies on a host, and what forbids it.
//
// Why: torch's pinned allocator rounds every block up to a power of two, so that a plan of 200 GiB can hold 384; each
// socket has only its part of the host's memory; and some hosts refuse to pin what they have room for.
// Not here: which tensors a policy pins (planner/host_parts.hpp). The limit on locked memory (ulimit -l) is a property
// of the process that trains and of no cluster file: CUDA does not ask for it on Linux, and containers set it as they
// like.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/cluster.hpp"
#include "models/units.hpp"

namespace ebb::sim {

enum class PinnedRounding : std::uint8_t {
  power_of_two,  // torch's CachingHostAllocator, each block by itself
  exact,         // one cudaHostAlloc or cudaHostRegister of just these bytes
};

/// The blocks of one rank, summed up.
struct PinnedLayout {
  Bytes asked{0};
  Bytes held{0};
  Bytes largest{0};        // held by one block
  std::int64_t calls = 0;  // blocks

  /// A block of `count` times the same bytes; one of no bytes is no block.
  void add(Bytes block, PinnedRounding rounding, std::int64_t count = 1);
  PinnedLayout& operator+=(const PinnedLayout& other);
};
PinnedLayout pinned_layout(std::span<const Bytes> blocks, PinnedRounding rounding);

/// How long one rank takes to pin the blocks when none of them is cached: per byte held and per call (Host). Ranks of a
/// host that pin at the same time share the kernel's page allocator and the driver's lock: not modelled.
Seconds pin_time(const PinnedLayout& layout, const Host& host);

/// Bytes on each NUMA node of a host whose ranks hold `held` bytes each, in the order of its GPUs. Of each,
/// topology.remote_memory lies evenly on the other nodes, the rest on the node of its GPU; the first
/// gpus_per_host / sockets GPUs are on the first node. The sum is that of `held`. Precondition: at most gpus_per_host
/// ranks.
std::vector<Bytes> bytes_per_node(std::span<const Bytes> held, const Cluster& cluster);

/// What the host is like beyond its cluster file.
struct PinnedEnvironment {
  bool wsl2 = false;   // Windows Subsystem for Linux
  bool bound = false;  // memory is bound to the near node (numactl --membind); otherwise pages spill to another node
};

/// Each limit that the ranks of one host violate, as a sentence with the cure; empty when nothing stands against it.
/// The host's memory is split evenly over its sockets.
std::vector<std::string> pinned_limits(std::span<const PinnedLayout> ranks, const Cluster& cluster,
                                       const PinnedEnvironment& environment);

}  // namespace ebb::sim
