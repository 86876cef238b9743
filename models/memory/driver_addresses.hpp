// Where the CUDA driver puts what cudaMalloc returns, as far as the order of addresses goes.
//
// Why: among free blocks of equal size torch takes the one at the lowest address, so that which tensor lands in which
// segment, and with it what can later be given back or must be asked for, depends on the driver.
//
// The rule was read off the pointers of 398 segments (2 MiB to 138 GiB) on an H200 with driver 580.159.04, and then
// held for all 327 of a second recording: the driver takes addresses in regions of a multiple of 32 MiB, a new one in
// the highest gap that is larger than it. A segment goes into the most recent region with room, there into the smallest
// hole, the lowest of equal ones. An empty region is given up. The first region holds 8 MiB of the context's and stays.
//
// Not here: other drivers may do otherwise (then only ties come out differently), and memory that others allocate.
#pragma once

#include <cstdint>
#include <vector>

namespace ebb::memory {

class DriverAddresses {
 public:
  DriverAddresses() { clear(); }
  void clear();
  /// The address of a new segment. Precondition: bytes > 0, a multiple of 2 MiB.
  std::uint64_t take(std::int64_t bytes);
  /// Precondition: take(bytes) returned `address`.
  void give(std::uint64_t address, std::int64_t bytes);

 private:
  struct Region {
    std::uint64_t begin = 0;
    std::int64_t bytes = 0;
    std::int64_t used = 0;
    std::uint64_t age = 0;  // larger is more recent
    std::uint64_t end() const { return begin + static_cast<std::uint64_t>(bytes); }
  };
  struct Hole {  // never across two regions
    std::uint64_t begin = 0;
    std::int64_t bytes = 0;
    std::uint64_t end() const { return begin + static_cast<std::uint64_t>(bytes); }
  };

  std::vector<Hole>::iterator first_hole_from(std::uint64_t address);
  std::vector<Hole>::iterator smallest_hole(const Region& region, std::int64_t bytes);
  Region& new_region(std::int64_t bytes);

  std::vector<Region> regions_;  // by descending address
  std::vector<Hole> holes_;      // by ascending address
  std::uint64_t regions_made_ = 0;
};

}  // namespace ebb::memory
