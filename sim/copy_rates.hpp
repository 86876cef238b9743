// CopyRates: how fast copies between pinned host memory and the device run, alone and against each other.
//
// A copy crosses its own direction of the GPU's host link, the limit of both directions together, and the host's limits
// that all GPUs of the host share, one way and both ways. Two copies of one direction never share: a GPU has one copy
// engine a direction, and the engine is FIFO (forums.developer.nvidia.com 365145: three concurrent host-to-device
// copies on an H100 run one after another). So a rank's flows are at most two, and three sets of them can exist; their
// rates are solved here once, and the event loop only looks them up.
#pragma once

#include <array>
#include <cstdint>

#include "models/cluster.hpp"
#include "sim/simulate.hpp"

namespace ebb::sim {

enum class Direction : std::uint8_t { h2d = 0, d2h = 1 };
inline constexpr unsigned kDirections = 2;

/// bytes_per_tick[set][direction]; bit d of `set`: a copy of direction d is flowing. 0 outside the set.
struct CopyRates {
  std::array<std::array<double, kDirections>, 1U << kDirections> bytes_per_tick{};
};

/// Weighted max-min over the limits above. `d2h_weight` is how much device-to-host takes for each unit of
/// host-to-device where a shared limit binds (reads of host memory wait for an answer, writes do not: nvbandwidth
/// issues 11 and 53 report 24 against 12-13 GB/s on PCIe 4 A100s). The host's limits are divided by the ranks that load
/// them with the same schedule: k equal flows on capacity C are one flow on C / k. Preconditions: every limit > 0
/// (infinity for "none"), d2h_weight > 0, ranks_per_host >= 1.
CopyRates copy_rates(const HostLink& link, const Sharing& sharing);

}  // namespace ebb::sim
