// From measured tables to a Cluster's figures: least squares in which relative errors count.
//
// Every fit has the form  time = sum over unknowns of coefficient * unknown  and minimises
//     sum over measurements of ((fitted - measured) / measured)^2,
// so that a small copy's 3 us weigh as much as a large one's 20 ms. What the simulator does with a figure decides what
// is fitted (the formulas stand at each function). Pure functions; a residual is |fitted - measured| / measured.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/cluster.hpp"
#include "replay/calibrate_data.hpp"

namespace ebb::replay {

struct Residual {
  double median = 0;
  double worst = 0;
};

/// Copies back to back alone: time = calls * latency + bytes / rate, a rate each way, one latency.
/// Precondition: pinned copies both ways of at least two sizes; pageable and mixed ones are passed over.
struct LinkFit {
  Seconds latency;
  BytesPerSecond h2d;
  BytesPerSecond d2h;
  Residual residual;
};
LinkFit fit_link(std::span<const CopyTime> copies);

/// Rate of copies from or to pageable memory, the median over sizes; nullopt when none was measured.
std::optional<BytesPerSecond> fit_pageable(std::span<const CopyTime> copies, bool to_device);

/// Both directions at once on one GPU. The simulator lets a copy's latency pass before its bytes flow, so that a
/// direction that moves copies of b bytes at the steady rate s flows at 1 / (1 / s - latency / b) in between; `both` is
/// the sum of the two, by size, and the weight their ratio. No sum exceeds link.h2d + link.d2h.
struct BothFit {
  std::vector<SizedRate> by_size;  // ascending, from `least` on, at most 8
  BytesPerSecond both;             // of the largest size
  double d2h_weight = 1;           // median over the sizes
  double least_weight = 1;
  double most_weight = 1;
  Residual residual;  // of each direction's rate with the one weight
};
/// nullopt when flows of one GPU both ways are missing. Copies smaller than `least` are left to the latency.
std::optional<BothFit> fit_both(std::span<const FlowTime> flows, const LinkFit& link, Bytes least);

/// What the simulator makes of two steady directions of copies of `bytes` each, in bytes per second with latency: for
/// residuals and for checks of sizes that were not fitted.
struct Steady {
  double h2d = 0;
  double d2h = 0;
};
Steady steady_rates(const LinkFit& link, const BothFit& both, Bytes bytes);

/// All GPUs at once: the sum over GPUs of what flows of one shape moved, the least over shapes for one way (a figure
/// serves both directions), the most over sizes for both ways (sizes have both_by_size). nullopt: not measured.
struct HostFit {
  BytesPerSecond one_way;
  BytesPerSecond both;
};
std::optional<HostFit> fit_host(std::span<const FlowTime> flows, std::int64_t gpus);

/// time = floor + bytes / rate.
struct RateFit {
  Seconds floor;
  BytesPerSecond rate;
  Residual residual;
};
/// Over kernels whose name is in `what`; nullopt when there is none. With one size the floor is 0.
std::optional<RateFit> fit_kernels(std::span<const KernelTime> kernels, std::span<const std::string_view> what);

/// time = calls * call + bytes * seconds_per_gib / 2^30.
struct PinFit {
  Seconds call;
  double seconds_per_gib = 0;
  Residual residual;
};
std::optional<PinFit> fit_pins(std::span<const PinTime> pins, std::string_view what);

/// Collectives of n GPUs inside one NVLink domain, where NCCL takes its ring with the Simple protocol:
/// time = floor + passes (n - 1) / n * S / bus, passes 2 for all-reduce and 1 otherwise. Fitted to S >= `least`;
/// collectives beside copies are passed over.
struct BusFit {
  Seconds floor;
  BytesPerSecond bus;
  Residual residual;
};
std::optional<BusFit> fit_bus(std::span<const CollectiveRun> runs, Bytes least);

/// The simulator multiplies a collective's rate by 1 - interference * use of the busiest host link; the median over
/// runs beside copies, each against the run alone of the same shape. nullopt: not measured.
std::optional<double> fit_interference(std::span<const CollectiveRun> runs, Seconds floor);

/// Bytes that a stream had moved by time `at`, linear between `times` (ascending; the k-th is when k + 1 times `step`
/// bytes had moved). Precondition: at least one mark, at between the first and the last.
double moved_by(std::span<const double> times, double step, double at);

}  // namespace ebb::replay
