// HostStore: the host memory of one rank. A pinned part that copies go to and come from, and a pageable part for state
// that only the CPU touches. Contiguous, on the NUMA node of the rank's GPU, all pages there before the first copy.
//
// How: mmap, placed (numa.hpp), huge pages where the kernel has them, touched by several threads, then registered with
// the driver in pieces (host_store_pieces.hpp: copies are cut at their borders). Where the driver refuses to register,
// cudaHostAlloc gives the pinned part instead.
// Filling keeps an eye on MemAvailable: at the end of memory it waits for a virtual machine to grow, and gives up with
// a message before the kernel starts to kill.
// Not here: what lies where (Program, host_layout).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "models/units.hpp"

namespace ebb::replay {

struct HostStoreOptions {
  Bytes pinned{0};
  Bytes pageable{0};
  int device = 0;   // CUDA device whose NUMA node is wanted
  int threads = 0;  // that touch pages; 0: up to 16
};

class HostStore {
 public:
  HostStore();  // nothing
  /// IoError when the memory cannot be had or pinned (amount, limit, cure), CudaError when CUDA itself does not work.
  explicit HostStore(const HostStoreOptions& options);
  ~HostStore();
  HostStore(HostStore&& other) noexcept;
  HostStore& operator=(HostStore&& other) noexcept;

  /// Zero at first. Offsets as in Program: Transfer::host_at into pinned, StateRun's as HostAdam says.
  std::byte* pinned() const;
  std::byte* pageable() const;
  Bytes pinned_bytes() const;
  Bytes pageable_bytes() const;

  /// What could not be done as wished (no NUMA placement, cudaHostAlloc instead of registering), one clause each.
  const std::vector<std::string>& remarks() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace ebb::replay
