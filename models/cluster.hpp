// Cluster: what the hardware can do. Every figure carries its source: "measured ...", "datasheet ..." or
// "report ..."; the YAML requires one, so that an answer can say what it rests on.
#pragma once

#include <cstdint>
#include <string>

#include "models/units.hpp"

namespace ebb {

/// A value and where it comes from.
template <class T>
struct Sourced {
  T value{};
  std::string source;

  bool operator==(const Sourced&) const = default;
};

struct Gpu {
  std::string name;
  Sourced<Bytes> memory;                 // what the driver reports as total
  Sourced<Bytes> context;                // CUDA context and NCCL buffers, outside the allocator
  Sourced<BytesPerSecond> hbm;           // achieved device-to-device copy, reads + writes
  Sourced<BytesPerSecond> adam;          // achieved by fused Adam over the bytes it must move
  Sourced<BytesPerSecond> adam_foreach;  // same bytes, unfused multi-tensor Adam
  Sourced<FlopsPerSecond> matrix_bf16;   // achieved dense GEMM on random data
  Sourced<FlopsPerSecond> matrix_fp8;
  /// Part of the achieved GEMM rate that a whole training step reaches (launch gaps, small GEMMs).
  Sourced<double> compute_efficiency;

  bool operator==(const Gpu&) const = default;
};

/// One GPU's link to pinned host memory, and what the host sustains for all its GPUs together.
struct HostLink {
  Sourced<BytesPerSecond> h2d;           // alone
  Sourced<BytesPerSecond> d2h;           // alone
  Sourced<BytesPerSecond> both;          // h2d + d2h together, sum
  Sourced<double> d2h_weight;            // share of `both` that d2h takes for each unit of h2d (1: even)
  Sourced<BytesPerSecond> host_one_way;  // all GPUs of a host, one direction, sum
  Sourced<BytesPerSecond> host_both;     // all GPUs of a host, both directions, sum
  Sourced<Seconds> latency;              // per copy, back to back on a stream

  bool operator==(const HostLink&) const = default;
};

struct Host {
  Sourced<Bytes> memory;
  std::int64_t sockets = 2;
  Sourced<BytesPerSecond> cpu_adam;     // host Adam over its 28 bytes an element, all GPUs of the host together
  Sourced<double> pin_seconds_per_gib;  // cudaHostAlloc

  bool operator==(const Host&) const = default;
};

/// Host-side costs of one call; the CPU thread of a rank issues in program order.
struct Calls {
  Sourced<Seconds> launch;       // a kernel launch
  Sourced<Seconds> copy;         // enqueue one asynchronous copy
  Sourced<Seconds> synchronize;  // host waits for a stream: cost beyond the waiting itself
  Sourced<Seconds> chunk;        // fixed framework cost of one chunk (param-group surgery, optimizer.step)
  Sourced<Seconds> tensor_scan;  // framework cost per parameter and pass over the parameter list

  bool operator==(const Calls&) const = default;
};

struct Interconnect {
  Sourced<BytesPerSecond> nvlink;   // collective bus bandwidth per GPU inside a host (or NVLink domain)
  Sourced<Seconds> nvlink_latency;  // per collective step
  Sourced<BytesPerSecond> network;  // per GPU, one direction, between hosts
  Sourced<Seconds> network_latency;
  std::int64_t nvlink_domain = 8;  // GPUs that reach each other over NVLink

  bool operator==(const Interconnect&) const = default;
};

struct Cluster {
  std::string name;
  std::int64_t gpus_per_host = 8;
  Gpu gpu;
  HostLink host_link;
  Host host;
  Calls calls;
  Interconnect interconnect;

  bool operator==(const Cluster&) const = default;
};

}  // namespace ebb
