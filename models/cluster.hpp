// Cluster: what the hardware can do. Every figure carries its source: "measured ...", "datasheet ..." or
// "report ..."; the YAML requires one, so that an answer can say what it rests on. Figures with a default here may be
// left out of the file: their source then says "default: ...". A limit of infinity does not bind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "models/units.hpp"

namespace ebb {

/// A value and where it comes from.
template <class T>
struct Sourced {
  T value{};
  std::string source;

  bool operator==(const Sourced&) const = default;
};

/// A limit that a file may leave out.
inline Sourced<BytesPerSecond> no_limit() {
  return {{std::numeric_limits<double>::infinity()}, "default: does not bind"};
}

/// A rate that depends on the size of a copy.
struct SizedRate {
  Bytes bytes{0};
  BytesPerSecond rate;

  bool operator==(const SizedRate&) const = default;
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
  /// What a memory-bound kernel takes on the device beyond its bytes: start, ramps and the wait for its last block.
  Sourced<Seconds> kernel_floor{{0.0}, "default: rates and calls hold it"};

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
  /// `both` by the bytes of a copy (all pieces of an op together), ascending. A copy has the rate of the next larger
  /// size, beyond the last the last's: hosts get slower with size, and so it never promises too much. Empty: `both`.
  Sourced<std::vector<SizedRate>> both_by_size{{}, "default: the same at any size"};
  /// From and to memory that is not pinned, alone: the driver copies through a pinned buffer of its own.
  Sourced<BytesPerSecond> pageable_h2d{{8.4e9}, "default: measured beside H200, 8.3 to 8.4 GB/s"};
  Sourced<BytesPerSecond> pageable_d2h{{14.6e9}, "default: measured beside H200, 13.4 to 15.8 GB/s"};

  bool operator==(const HostLink&) const = default;
};

/// What lies between the GPUs' links and host memory. GPUs are numbered along the host: consecutive ones share a
/// switch, and the first 1 / host.sockets of them the first socket. Rates are sums over the GPUs that share.
struct Topology {
  std::int64_t gpus_per_switch = 1;
  Sourced<BytesPerSecond> switch_one_way = no_limit();  // a PCIe switch's uplink, each direction
  Sourced<BytesPerSecond> switch_both = no_limit();     // both directions together
  Sourced<BytesPerSecond> socket_one_way = no_limit();  // a socket's root complex, each direction
  Sourced<BytesPerSecond> socket_both = no_limit();
  Sourced<BytesPerSecond> socket_memory = no_limit();  // a socket's memory, reads + writes
  Sourced<BytesPerSecond> inter_socket = no_limit();   // between two sockets, each direction
  /// Part of the pinned memory that lies on another socket than its GPU (0: bound to the near one, 0.5: interleaved
  /// over two).
  Sourced<double> remote_memory{0.0, "default: pinned memory lies beside its GPU"};

  bool operator==(const Topology&) const = default;
};

struct Host {
  Sourced<Bytes> memory;
  std::int64_t sockets = 2;
  Sourced<BytesPerSecond> cpu_adam;     // host Adam over its 28 bytes an element, all GPUs of the host together
  Sourced<double> pin_seconds_per_gib;  // cudaHostAlloc
  Sourced<Seconds> pin_call{{1e-3}, "default: measured beside H200, 256 MiB to 4 GiB leave about 1 ms a call"};

  bool operator==(const Host&) const = default;
};

/// Host-side costs of one call; the CPU thread of a rank issues in program order.
struct Calls {
  Sourced<Seconds> launch;       // a kernel launch
  Sourced<Seconds> copy;         // enqueue one asynchronous copy
  Sourced<Seconds> synchronize;  // host waits for a stream: cost beyond the waiting itself
  Sourced<Seconds> chunk;        // fixed framework cost of one chunk (param-group surgery, optimizer.step)
  Sourced<Seconds> tensor_scan;  // framework cost per parameter and pass over the parameter list
  Sourced<Seconds> event{{0.45e-6}, "default: measured beside H200, record and wait 0.42 to 0.46 us"};
  Sourced<Seconds> collective{{15e-6}, "default: half of the 30 us that a small NCCL call took from torch"};
  /// A tensor's allocation that the caching allocator answers from what it has.
  Sourced<Seconds> allocate{{0.5e-6}, "default: measured beside H200, allocation and free on a stream 0.7 to 1.0 us"};

  bool operator==(const Calls&) const = default;
};

struct Interconnect {
  Sourced<BytesPerSecond> nvlink;    // collective bus bandwidth per GPU inside a host (or NVLink domain)
  Sourced<Seconds> nvlink_latency;   // of one step of an NCCL ring with the Simple protocol
  Sourced<BytesPerSecond> network;   // per GPU, one direction, between hosts
  Sourced<Seconds> network_latency;  // the same between hosts
  /// The least that a collective takes, whatever NCCL's tables say.
  Sourced<Seconds> collective_floor{{0.0}, "default: NCCL's own tables"};
  /// How much a collective inside an NVLink domain slows down while its GPUs' host links are fully used: its rate is
  /// multiplied by 1 - copy_interference * utilisation.
  Sourced<double> copy_interference{
      0.017, "default: measured on two H200 (reduce-scatter beside host-to-device copies); not calibrated here"};
  std::int64_t nvlink_domain = 8;  // GPUs that reach each other over NVLink

  bool operator==(const Interconnect&) const = default;
};

/// What checkpoints are written to and read from, as one host sees it: a parallel file system or its own disks.
struct Storage {
  Sourced<BytesPerSecond> read = no_limit();  // all ranks of a host together; infinite: not known
  Sourced<BytesPerSecond> write = no_limit();

  bool operator==(const Storage&) const = default;
};

struct Cluster {
  std::string name;
  std::int64_t gpus_per_host = 8;
  Gpu gpu;
  HostLink host_link;
  Topology topology;
  Host host;
  Calls calls;
  Interconnect interconnect;
  Storage storage;

  bool operator==(const Cluster&) const = default;
};

/// The socket of the GPU at `place` of its host; places beyond gpus_per_host belong to the last.
inline std::int64_t socket_of(const Cluster& cluster, std::int64_t place) {
  return std::min(place * cluster.host.sockets / cluster.gpus_per_host, cluster.host.sockets - 1);
}

}  // namespace ebb
