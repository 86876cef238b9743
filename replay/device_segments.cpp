#include "replay/device_segments.hpp"

#include <cuda_runtime_api.h>

#include <utility>

#include "models/errors.hpp"

namespace ebb::replay {

DeviceSegments::DeviceSegments(std::function<void()> before_driver_call, std::function<void()> after)
    : before_(std::move(before_driver_call)), after_(std::move(after)) {}

memory::SegmentSource DeviceSegments::source() {
  return {.take = [this](std::uint64_t address, Bytes bytes) { return take(address, bytes); },
          .give = [this](std::uint64_t address, Bytes) { give(address); },
          .wait =
              [this] {
                if (before_) before_();
                check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
              }};
}

bool DeviceSegments::take(std::uint64_t address, Bytes bytes) {
  if (before_) before_();
  void* memory = nullptr;
  const cudaError_t result = cudaMalloc(&memory, static_cast<std::size_t>(bytes.value));
  if (result == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // the allocator says what it means
    return false;
  }
  check(result, "cudaMalloc");
  segments_.emplace(address, DeviceBytes(memory));
  if (after_) after_();
  return true;
}

void DeviceSegments::give(std::uint64_t address) {
  if (before_) before_();
  const auto it = segments_.find(address);
  EBB_ASSERT(it != segments_.end());
  segments_.erase(it);
}

void* DeviceSegments::real(std::uint64_t address) const {
  auto it = segments_.upper_bound(address);
  EBB_ASSERT(it != segments_.begin());
  --it;
  return static_cast<std::byte*>(it->second.get()) + (address - it->first);
}

}  // namespace ebb::replay
