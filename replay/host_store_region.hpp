// HostRegion: anonymous host memory, contiguous, on one NUMA node, in huge pages where the kernel has them, every page
// there. What a HostStore is made of before CUDA hears of it.
//
// Filling a gibibyte at a time, with a look at what is left before each. Why: on a virtual machine MemAvailable may be
// far too small at the start and grow while memory is used, so the amount alone is no ground to refuse; on any other
// machine the kernel would kill the process at the last page, without a word. So at the end of memory we wait for more
// and, when none comes, give everything back and say what was missing.
// Not here: pinning.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "models/host_limits.hpp"
#include "models/units.hpp"

namespace ebb::replay {

struct FillOptions {
  std::optional<int> node = std::nullopt;  // NUMA
  int threads = 0;                         // 0: as many as the machine has, at most 16
  Bytes step = 1_GiB;
  Bytes keep = 1_GiB;      // left to everybody else
  Seconds patience{20.0};  // how long too little may stay unchanged
  std::function<HostLimits()> limits = [] { return read_host_limits(); };
};

class HostRegion {
 public:
  HostRegion() = default;  // nothing
  /// IoError when there is not as much. 0 bytes: nothing.
  HostRegion(Bytes bytes, const FillOptions& options);
  ~HostRegion();
  HostRegion(HostRegion&& other) noexcept { swap(other); }
  HostRegion& operator=(HostRegion&& other) noexcept {
    swap(other);
    return *this;
  }

  std::byte* data() const { return data_; }
  Bytes bytes() const { return bytes_; }
  /// The node was wanted and the kernel took it.
  bool placed() const { return placed_; }

 private:
  void swap(HostRegion& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(placed_, other.placed_);
  }

  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  Bytes bytes_{0};
  bool placed_ = false;
};

}  // namespace ebb::replay
