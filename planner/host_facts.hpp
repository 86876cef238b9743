// HostFacts: what a Linux host says of itself in /proc and /sys, as far as it concerns offloading: memory and its
// limits, NUMA nodes, NVIDIA's driver and GPUs, their links, huge pages, shared memory, and the disk of checkpoints.
// Nothing here asks CUDA: it works before a driver is there, and tells that it is not.
// Not here: what the facts mean for a job (doctor.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/host_limits.hpp"
#include "models/units.hpp"

namespace ebb {

/// One direction of a PCIe link, by the rate of a lane and the number of lanes; 0: not told.
struct PcieLink {
  double gigatransfers = 0;  // of a lane, per second
  int width = 0;

  /// What the link carries each way after line coding, before packet headers; 0: not told.
  BytesPerSecond rate() const;
  bool operator==(const PcieLink&) const = default;
};

struct GpuFacts {
  std::string address;  // "0000:1b:00.0"
  std::string name;     // as the driver calls it; "" without a driver
  std::optional<int> node;
  PcieLink now;   // GPUs lower the rate while they are idle, never the width
  PcieLink most;  // of the GPU and the slot together

  bool operator==(const GpuFacts&) const = default;
};

struct NumaNode {
  int number = 0;
  Bytes total{0};

  bool operator==(const NumaNode&) const = default;
};

/// Where a directory lies, or its nearest parent that exists.
struct DiskFacts {
  std::string directory;   // as asked for
  std::string filesystem;  // "xfs", "nfs4", "lustre"; "": not told
  Bytes free{0};           // to an unprivileged user
  std::string nearest{};   // its nearest parent that exists; "": it exists itself
};

struct HostFacts {
  HostLimits limits;
  bool may_lock = false;  // CAP_IPC_LOCK: the limit on locked memory does not bind
  bool wsl = false;
  std::string container;               // "docker", "podman", "kubernetes", "container"; "": none that can be told
  std::string driver;                  // version of NVIDIA's kernel module; "": there is none
  bool windows_driver = false;         // /dev/dxg: the GPU is reached through Windows
  bool infiniband = false;             // RDMA devices (InfiniBand, RoCE)
  std::vector<GpuFacts> gpus;          // by PCI address
  std::vector<NumaNode> nodes;         // that have memory
  std::string transparent_huge_pages;  // "always", "madvise", "never"; "": not told
  Bytes huge_pages{0};                 // set aside by hugetlb, whatever uses them
  std::optional<Bytes> shared_memory;  // size of /dev/shm; unset: not mounted, or not told
  std::optional<DiskFacts> disk;
};

/// Reads ROOT/proc, ROOT/sys and ROOT/dev. What is missing stays unset: never an error. `checkpoint`: the directory
/// whose disk is asked for, "": none.
HostFacts read_host_facts(const std::string& root = "", const std::string& checkpoint = "");

}  // namespace ebb
