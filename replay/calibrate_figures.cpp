#include "replay/calibrate_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "replay/calibrate_checks.hpp"

namespace ebb::replay {
namespace {

/// Copies smaller than this are ruled by latency; their rate both ways is not fitted.
constexpr Bytes kLeastBoth = 4_MiB;
/// From here on NCCL's Simple ring carries a collective inside a host.
constexpr Bytes kLeastBus = 4_MiB;

std::string shown(double value) { return fmt::format("{:.3g}", value); }
std::string shown(Bytes value) { return format_bytes(value); }
std::string shown(BytesPerSecond value) { return format_bandwidth(value); }
std::string shown(Seconds value) { return format_seconds(value); }
std::string shown(const std::vector<SizedRate>& points) {
  std::string text;
  for (const SizedRate& point : points)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", exact_text(point.bytes), format_bandwidth(point.rate));
  return text.empty() ? "-" : text;
}

double round_all(double value) { return rounded(value); }
Bytes round_all(Bytes value) { return value; }
BytesPerSecond round_all(BytesPerSecond value) { return {rounded(value.value)}; }
Seconds round_all(Seconds value) { return {rounded(value.value)}; }
std::vector<SizedRate> round_all(std::vector<SizedRate> points) {
  for (SizedRate& point : points) point.rate.value = rounded(point.rate.value);
  return points;
}

class Calibrator {
 public:
  Calibrator(const CalibrationData& data, const Cluster& base, const std::string& name)
      : data_(data), base_(base), out_{.cluster = base, .figures = {}, .remarks = {}} {
    out_.cluster.name = name;
    const Setting& s = data.setting;
    where_ = fmt::format("measured: {} {}, driver {}, {}", s.gpus, s.gpu, s.driver, s.date);
  }

  Calibration run() {
    machine();
    link();
    host_together();
    kernels();
    host();
    calls();
    interconnect();
    for (std::string& text : checks(data_, out_.cluster)) remark(std::move(text));
    return std::move(out_);
  }

 private:
  template <class T, class Block>
  void set(const char* name, Sourced<T> Block::*figure, Block& block, const Block& before, T value,
           const std::string& what, std::optional<Residual> residual = std::nullopt) {
    Sourced<T>& to = block.*figure;
    to.value = round_all(value);
    to.source = fmt::format("{}; {}", where_, what);
    if (residual)
      to.source += fmt::format(", residual {:.1f} % (worst {:.1f} %)", 100 * residual->median, 100 * residual->worst);
    out_.figures.push_back({name, shown(to.value), shown((before.*figure).value), residual});
  }

  void remark(std::string text) { out_.remarks.push_back(std::move(text)); }

  void machine();
  void link();
  void host_together();
  void kernels();
  void memory_bound(double adam);
  void host();
  void calls();
  void call(const char* name, Sourced<Seconds> Calls::*figure, const char* what, double less, const char* text);
  void interconnect();

  const CalibrationData& data_;
  const Cluster& base_;
  Calibration out_;
  std::string where_;
  LinkFit link_;
  double both_most_ = 0;
};

void Calibrator::machine() {
  const Setting& s = data_.setting;
  Cluster& c = out_.cluster;
  c.gpus_per_host = s.gpus;
  c.gpu.name = s.gpu;
  set("gpu.memory", &Gpu::memory, c.gpu, base_.gpu, s.memory, "total of cudaMemGetInfo");
  set("gpu.context", &Gpu::context, c.gpu, base_.gpu, s.context,
      s.gpus > 1 ? "total less free after creation of the context, and what NCCL took"
                 : "total less free after creation of the context");
  if (s.host_memory.value > 0)
    set("host.memory", &Host::memory, c.host, base_.host, s.host_memory, "the operating system's total");
  c.host.sockets = std::min(base_.host.sockets, s.gpus);
  // Limits between the GPUs' links and memory show in host_one_way and host_both, measured with all GPUs of this host.
  if (base_.gpus_per_host != s.gpus) c.topology = {};
  if (s.gpu != base_.gpu.name)
    remark(fmt::format("the base cluster {} has another GPU ({}): its kept figures may not hold here", base_.name,
                       base_.gpu.name));
}

void Calibrator::link() {
  HostLink& link = out_.cluster.host_link;
  const auto ways = [&](bool to_device) {
    return std::any_of(data_.copies.begin(), data_.copies.end(),
                       [&](const CopyTime& c) { return c.pinned && c.to_device == to_device; });
  };
  if (!ways(true) || !ways(false)) throw InputError({}, "the measurements hold no copies both ways", "measure again");
  link_ = fit_link(data_.copies);
  const std::string alone = "pinned, alone, back to back, time = latency + bytes / rate";
  set("host_link.h2d", &HostLink::h2d, link, base_.host_link, link_.h2d, alone, link_.residual);
  set("host_link.d2h", &HostLink::d2h, link, base_.host_link, link_.d2h, alone, link_.residual);
  set("host_link.latency", &HostLink::latency, link, base_.host_link, link_.latency, alone, link_.residual);
  // What follows is to agree with the rounded figures, and with the reader's check of `both`.
  link_.h2d = link.h2d.value;
  link_.d2h = link.d2h.value;
  link_.latency = link.latency.value;

  const auto both = fit_both(data_.flows, link_, kLeastBoth);
  if (!both) throw InputError({}, "the measurements hold no copies both ways at once", "measure again");
  const std::string together = "copies both ways at once through memory beyond the caches, steady state";
  set("host_link.both", &HostLink::both, link, base_.host_link, both->both,
      together + fmt::format(", of {}", format_bytes(both->by_size.back().bytes)));
  set("host_link.both_by_size", &HostLink::both_by_size, link, base_.host_link, both->by_size, together,
      both->residual);
  set("host_link.d2h_weight", &HostLink::d2h_weight, link, base_.host_link, both->d2h_weight,
      together + fmt::format(", from {:.2f} to {:.2f} by size", both->least_weight, both->most_weight));
  // Rounding may have lifted a sum over what the reader allows.
  const double most = link.h2d.value.value + link.d2h.value.value;
  link.both.value.value = std::min(link.both.value.value, most);
  for (SizedRate& point : link.both_by_size.value) {
    point.rate.value = std::min(point.rate.value, most);
    both_most_ = std::max(both_most_, point.rate.value);
  }

  for (const bool to_device : {true, false}) {
    const auto rate = fit_pageable(data_.copies, to_device);
    if (!rate) continue;
    set(to_device ? "host_link.pageable_h2d" : "host_link.pageable_d2h",
        to_device ? &HostLink::pageable_h2d : &HostLink::pageable_d2h, link, base_.host_link, *rate,
        "from and to memory that is not pinned, alone");
  }
}

void Calibrator::host_together() {
  HostLink& link = out_.cluster.host_link;
  const std::int64_t gpus = data_.setting.gpus;
  if (gpus == 1) {
    const BytesPerSecond alone{std::max(link_.h2d.value, link_.d2h.value)};
    set("host_link.host_one_way", &HostLink::host_one_way, link, base_.host_link, alone, "the only GPU");
    set("host_link.host_both", &HostLink::host_both, link, base_.host_link, {both_most_},
        "the most of both_by_size; the only GPU");
    return;
  }
  const auto host = fit_host(data_.flows, gpus);
  if (!host) {
    remark("all GPUs copying at once was not measured: host_one_way and host_both are the base's");
    return;
  }
  set("host_link.host_one_way", &HostLink::host_one_way, link, base_.host_link, host->one_way,
      fmt::format("{} GPUs at once, one way, the slower", gpus));
  set("host_link.host_both", &HostLink::host_both, link, base_.host_link, host->both,
      fmt::format("{} GPUs at once, both ways", gpus));
}

void Calibrator::kernels() {
  Gpu& gpu = out_.cluster.gpu;
  constexpr std::array<std::string_view, 3> kAdam = {"adam", "adam_bf16", "adam_runs"};
  constexpr std::array<std::string_view, 1> kForeach = {"adam_foreach"};
  double adam = 0;
  if (const auto fit = fit_kernels(data_.kernels, kAdam)) {
    adam = fit->rate.value;
    set("gpu.adam", &Gpu::adam, gpu, base_.gpu, fit->rate, "AdamW of ebb-replay, time = floor + bytes / rate",
        fit->residual);
    // Noise can take it below nothing where no small kernel was measured.
    set("gpu.kernel_floor", &Gpu::kernel_floor, gpu, base_.gpu, Seconds{std::max(0.0, fit->floor.value)},
        "AdamW of ebb-replay, time = floor + bytes / rate", fit->residual);
  }
  if (const auto fit = fit_kernels(data_.kernels, kForeach))
    set("gpu.adam_foreach", &Gpu::adam_foreach, gpu, base_.gpu, fit->rate,
        fmt::format("AdamW of ebb-replay in nine passes, over the bytes of the fused one, beyond {} a launch",
                    format_seconds({rounded(fit->floor.value)})),
        fit->residual);
  memory_bound(adam);
}

void Calibrator::memory_bound(double adam) {
  constexpr std::array<std::string_view, 5> kBound = {"copy", "norm", "scale", "cast", "zero"};
  const auto fit = fit_kernels(data_.kernels, kBound);
  if (!fit) return;
  // The simulator lets no kernel run faster than hbm.
  const BytesPerSecond rate{std::max(fit->rate.value, adam)};
  set("gpu.hbm", &Gpu::hbm, out_.cluster.gpu, base_.gpu, rate,
      fit->rate.value >= adam ? "device copy, norm, scale, cast and zero together, reads and writes"
                              : "as gpu.adam, which is faster than device copy, norm, scale, cast and zero together",
      fit->residual);
}

void Calibrator::host() {
  Host& host = out_.cluster.host;
  if (const auto pin = fit_pins(data_.pins, "alloc")) {
    set("host.pin_seconds_per_gib", &Host::pin_seconds_per_gib, host, base_.host, pin->seconds_per_gib,
        "cudaHostAlloc, time = call + bytes", pin->residual);
    set("host.pin_call", &Host::pin_call, host, base_.host, pin->call, "cudaHostAlloc, time = call + bytes",
        pin->residual);
  }
  if (!data_.host_adam.empty()) {
    std::vector<double> rates;
    for (const HostAdamTime& run : data_.host_adam)
      rates.push_back(28 * static_cast<double>(run.numel.value) / run.each.median);
    set("host.cpu_adam", &Host::cpu_adam, host, base_.host, BytesPerSecond{timed(rates).median},
        fmt::format("AdamW of ebb-replay on the host, {} threads, 28 bytes an element", data_.setting.host_threads));
  }
}

void Calibrator::call(const char* name, Sourced<Seconds> Calls::*figure, const char* what, double less,
                      const char* text) {
  std::vector<double> each;
  for (const CallTime& time : data_.calls)
    if (time.what == what) each.push_back(time.each.median);
  if (each.empty()) return;
  set(name, figure, out_.cluster.calls, base_.calls, Seconds{std::max(0.0, timed(each).median - less)}, text);
}

void Calibrator::calls() {
  const Calls& calls = out_.cluster.calls;
  call("calls.launch", &Calls::launch, "launch", 0, "host time of a launch, queue not full");
  call("calls.copy", &Calls::copy, "copy", 0, "host time of cudaMemcpyAsync, queue not full");
  call("calls.synchronize", &Calls::synchronize, "synchronize", calls.launch.value.value,
       "launch and synchronise on an idle stream, less the launch");
  call("calls.event", &Calls::event, "event", 0, "host time of recording an event and waiting for it on a stream");
  call("calls.collective", &Calls::collective, "collective", 0, "host time of enqueuing a small NCCL collective");
  call("calls.allocate", &Calls::allocate, "allocate", 0,
       "allocation and free of a cached block by ebb-replay's allocator");
}

void Calibrator::interconnect() {
  Interconnect& net = out_.cluster.interconnect;
  const std::int64_t gpus = data_.setting.gpus;
  net.nvlink_domain = data_.setting.peers ? gpus : 1;
  const auto bus = fit_bus(data_.collectives, kLeastBus);
  if (!bus) {
    if (gpus > 1) remark("no collectives were measured: the interconnect is the base's");
    return;
  }
  const std::string what = fmt::format("NCCL {} over {} GPUs, from {} on, time = floor + bus bytes / rate",
                                       data_.setting.nccl, gpus, format_bytes(kLeastBus));
  set("interconnect.nvlink", &Interconnect::nvlink, net, base_.interconnect, bus->bus, what, bus->residual);
  set("interconnect.collective_floor", &Interconnect::collective_floor, net, base_.interconnect, bus->floor, what,
      bus->residual);
  if (const auto slower = fit_interference(data_.collectives, bus->floor))
    set("interconnect.copy_interference", &Interconnect::copy_interference, net, base_.interconnect, *slower,
        "collectives beside copies both ways on every GPU");
}

}  // namespace

double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  return std::stod(fmt::format("{:.4g}", value));
}

Calibration calibrated(const CalibrationData& data, const Cluster& base, const std::string& name) {
  return Calibrator(data, base, name).run();
}

}  // namespace ebb::replay
