#include "replay/calibrate_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/quantity_text.hpp"
#include "replay/calibrate_fit.hpp"

namespace ebb::replay {
namespace {

/// A kernel whose rate is off by more deserves a sentence: hbm is one figure for all of them.
constexpr double kSpread = 0.05;

LinkFit link_of(const Cluster& c) {
  return {
      .latency = c.host_link.latency.value, .h2d = c.host_link.h2d.value, .d2h = c.host_link.d2h.value, .residual = {}};
}

/// Small pieces both ways, whose rates were not fitted.
void pieces(const CalibrationData& data, const Cluster& c, std::vector<std::string>& said) {
  BothFit both;
  both.by_size = c.host_link.both_by_size.value;
  both.both = c.host_link.both.value;
  both.d2h_weight = c.host_link.d2h_weight.value;
  for (const FlowTime& flow : data.flows) {
    const bool fitted = !both.by_size.empty() && flow.bytes >= both.by_size.front().bytes;
    if (flow.gpus != 1 || flow.gpu != 0 || fitted || flow.h2d == 0 || flow.d2h == 0) continue;
    const Steady steady = steady_rates(link_of(c), both, flow.bytes);
    said.push_back(fmt::format("pieces of {} both ways: {} in and {} out, the figures say {} and {}",
                               format_bytes(flow.bytes), format_bandwidth({flow.h2d / flow.window}),
                               format_bandwidth({flow.d2h / flow.window}), format_bandwidth({steady.h2d}),
                               format_bandwidth({steady.d2h})));
  }
}

void mixed(const CalibrationData& data, const Cluster& c, std::vector<std::string>& said) {
  const LinkFit link = link_of(c);
  for (const CopyTime& copy : data.copies) {
    if (!copy.mixed) continue;
    const double all = static_cast<double>(copy.calls) *
                       (link.latency.value + (copy.bytes / (copy.to_device ? link.h2d : link.d2h)).value);
    said.push_back(fmt::format("{} copies {} of 16 KiB to 24 MiB back to back: {}, the figures say {} ({:+.1f} %)",
                               copy.calls, copy.to_device ? "in" : "out", format_seconds({copy.all.median}),
                               format_seconds({all}), 100 * (all / copy.all.median - 1)));
  }
}

void kernels(const CalibrationData& data, const Cluster& c, std::vector<std::string>& said) {
  constexpr std::array<std::string_view, 5> kBound = {"copy", "norm", "scale", "cast", "zero"};
  const double hbm = c.gpu.hbm.value.value;
  for (const KernelTime& kernel : data.kernels) {
    const double own = static_cast<double>(kernel.bytes.value) / kernel.each.median;
    const bool bound = std::find(kBound.begin(), kBound.end(), kernel.what) != kBound.end();
    if (bound && std::abs(own / hbm - 1) > kSpread)
      said.push_back(fmt::format("{} over {} runs at {}, {:+.0f} % from gpu.hbm", kernel.what,
                                 format_bytes(kernel.bytes), format_bandwidth({own}), 100 * (own / hbm - 1)));
    if (kernel.what == "adam_beside")
      said.push_back(
          fmt::format("AdamW beside copies both ways runs at {}, the figures say {}", format_bandwidth({own}),
                      format_bandwidth({std::min(c.gpu.adam.value.value, hbm - c.host_link.both.value.value)})));
  }
}

void calls(const CalibrationData& data, const Cluster& c, std::vector<std::string>& said) {
  constexpr Bytes kChained = 1_MiB;
  const LinkFit link = link_of(c);
  for (const CallTime& time : data.calls) {
    if (time.what == "chain") {
      const double copies = 2 * link.latency.value + (kChained / link.h2d).value + (kChained / link.d2h).value;
      said.push_back(fmt::format(
          "a copy in, a kernel and a copy out of 1 MiB that wait for each other take {}, the figures say {}: "
          "{} each time one hands over to the next",
          format_seconds({time.each.median}), format_seconds({copies}),
          format_seconds({(time.each.median - copies) / 3})));
    }
    if (time.what == "launch_runs")
      said.push_back(fmt::format("a launch over 300 runs takes the host {}, the figures say {}",
                                 format_seconds({time.each.median}), format_seconds(c.calls.launch.value)));
  }
}

}  // namespace

std::vector<std::string> checks(const CalibrationData& data, const Cluster& cluster) {
  std::vector<std::string> said;
  pieces(data, cluster, said);
  mixed(data, cluster, said);
  kernels(data, cluster, said);
  calls(data, cluster, said);
  if (const auto registered = fit_pins(data.pins, "register"))
    said.push_back(
        fmt::format("registering memory that was touched before takes {:.3g} s per GiB", registered->seconds_per_gib));
  return said;
}

}  // namespace ebb::replay
