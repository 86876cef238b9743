// DeviceSegments: real device memory behind the segments of a caching allocator's model, and the way from an address
// of the model to the real one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "models/memory/caching_allocator.hpp"
#include "replay/cuda.hpp"

namespace ebb::replay {

class DeviceSegments {
 public:
  /// `before_driver_call` may be empty; `after` hears that the driver gave memory.
  DeviceSegments(std::function<void()> before_driver_call, std::function<void()> after);

  /// For CachingAllocator: refers to this object, which outlives it.
  memory::SegmentSource source();
  /// Of a live block. Precondition: `address` lies in a segment that was taken and not given back.
  void* real(std::uint64_t address) const;

 private:
  bool take(std::uint64_t address, Bytes bytes);
  void give(std::uint64_t address);

  std::function<void()> before_;
  std::function<void()> after_;
  std::map<std::uint64_t, DeviceBytes> segments_;  // by the model's address
};

}  // namespace ebb::replay
