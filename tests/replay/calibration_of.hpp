// Measurements of a made-up machine whose figures are known: what a calibration of it would take, with or without
// noise.
#pragma once

#include <random>

#include "models/cluster.hpp"
#include "replay/calibrate_data.hpp"

namespace ebb::test {

/// Relative noise, uniform in +-`most`; the same numbers in every run.
class Noise {
 public:
  explicit Noise(double most) : most_(most) {}
  replay::Timed operator()(double seconds) {
    const double t = seconds * (1 + std::uniform_real_distribution<double>(-most_, most_)(engine_));
    return {.median = t, .least = t, .most = t, .repeats = 5};
  }

 private:
  double most_;
  std::mt19937_64 engine_{1};
};

inline double seconds_of_copy(const HostLink& link, bool to_device, Bytes bytes) {
  return link.latency.value.value + (bytes / (to_device ? link.h2d : link.d2h).value).value;
}

/// The rate that the cluster says for both directions of copies of this size.
inline double both_rate(const HostLink& link, Bytes bytes) {
  for (const SizedRate& size : link.both_by_size.value)
    if (bytes <= size.bytes) return size.rate.value;
  return link.both_by_size.value.empty() ? link.both.value.value : link.both_by_size.value.back().rate.value;
}

/// Half a second of steady copies both ways: after each latency the bytes flow at the direction's share.
inline replay::FlowTime flow_of(const HostLink& link, Bytes bytes) {
  const double w = link.d2h_weight.value;
  const double sum = both_rate(link, bytes);
  const double size = static_cast<double>(bytes.value);
  const double late = link.latency.value.value;
  const double window = 0.5;
  return {.gpu = 0,
          .gpus = 1,
          .bytes = bytes,
          .window = window,
          .h2d = window * size / (late + size / (sum / (1 + w))),
          .d2h = window * size / (late + size / (sum * w / (1 + w)))};
}

inline replay::CalibrationData calibration_of(const Cluster& c, double noise_most) {
  Noise noise(noise_most);
  replay::CalibrationData data;
  data.setting = {.gpu = c.gpu.name,
                  .gpus = c.gpus_per_host,
                  .driver = "580.159",
                  .cuda = "13.0",
                  .nccl = c.gpus_per_host > 1 ? "2.28.9" : "",
                  .date = "2026-11-30",
                  .command = "made up",
                  .memory = c.gpu.memory.value,
                  .context = c.gpu.context.value,
                  .host_memory = c.host.memory.value,
                  .host_threads = 16,
                  .peers = c.gpus_per_host > 1};
  const HostLink& link = c.host_link;
  for (const Bytes bytes : {16_KiB, 256_KiB, 1_MiB, 16_MiB, 256_MiB}) {
    for (const bool to_device : {true, false}) {
      const std::int64_t calls = bytes < 16_MiB ? 200 : 8;
      data.copies.push_back({.to_device = to_device,
                             .pinned = true,
                             .mixed = false,
                             .gpu = 0,
                             .bytes = bytes,
                             .calls = calls,
                             .all = noise(static_cast<double>(calls) * seconds_of_copy(link, to_device, bytes))});
    }
  }
  for (const bool to_device : {true, false})
    data.copies.push_back({.to_device = to_device,
                           .pinned = false,
                           .mixed = false,
                           .gpu = 0,
                           .bytes = 256_MiB,
                           .calls = 1,
                           .all = noise((256_MiB / (to_device ? link.pageable_h2d : link.pageable_d2h).value).value)});
  for (const SizedRate& size : link.both_by_size.value) {
    replay::FlowTime flow = flow_of(link, size.bytes);
    flow.window *= noise(1).median;
    data.flows.push_back(flow);
  }
  if (c.gpus_per_host > 1)
    for (std::int64_t gpu = 0; gpu < c.gpus_per_host; ++gpu) {
      const double one = link.host_one_way.value.value / static_cast<double>(c.gpus_per_host);
      const double both = link.host_both.value.value / static_cast<double>(c.gpus_per_host) / 2;
      data.flows.push_back({gpu, c.gpus_per_host, 64_MiB, noise(1).median, one, 0});
      data.flows.push_back({gpu, c.gpus_per_host, 64_MiB, noise(1).median, 0, one});
      data.flows.push_back({gpu, c.gpus_per_host, 64_MiB, noise(1).median, both, both});
    }
  for (const Bytes bytes : {16_MiB, 1_GiB}) {
    const double gib = static_cast<double>(bytes.value) / static_cast<double>((1_GiB).value);
    const double each = c.host.pin_call.value.value + gib * c.host.pin_seconds_per_gib.value;
    data.pins.push_back({.what = "alloc", .bytes = bytes, .calls = 4, .seconds = noise(4 * each).median});
  }
  const Calls& calls = c.calls;
  data.calls = {{"launch", noise(calls.launch.value.value)},
                {"copy", noise(calls.copy.value.value)},
                {"event", noise(calls.event.value.value)},
                {"synchronize", noise(calls.launch.value.value + calls.synchronize.value.value)},
                {"allocate", noise(calls.allocate.value.value)},
                {"collective", noise(calls.collective.value.value)}};
  const auto kernel = [&](const char* what, Bytes bytes, BytesPerSecond rate, double floor) {
    data.kernels.push_back({what, bytes, noise(floor + (bytes / rate).value)});
  };
  for (const Bytes bytes : {100_MiB, 1_GiB, 7_GiB})
    kernel("adam", bytes, c.gpu.adam.value, c.gpu.kernel_floor.value.value);
  for (const Bytes bytes : {1_GiB, 7_GiB}) kernel("adam_foreach", bytes, c.gpu.adam_foreach.value, 20e-6);
  for (const char* what : {"copy", "norm", "scale", "cast", "zero"}) kernel(what, 2_GiB, c.gpu.hbm.value, 0);
  const Numel numel{1 << 27};
  data.host_adam.push_back({numel, 16, noise((bytes_of(numel, 28) / c.host.cpu_adam.value).value)});
  return data;
}

}  // namespace ebb::test
