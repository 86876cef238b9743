// CUDA handles that free themselves, and one checked call.
//
// Why: nothing may stay allocated on any way out, and an unchecked call shows up as a wrong number much later. Each
// handle belongs to the device that was current when it was made; the destructor needs no current device. Not here:
// the memory of a plan's buffers (device_memory.hpp), pinned memory of the host store.
// CUDA-free header: a stream, an event and a graph are opaque pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "models/units.hpp"

namespace ebb::replay {

/// CudaError with the call, the error's name and text, and the current device, unless `error` (a cudaError_t) is 0.
void check(int error, const char* call);

void set_device(int device);

/// Owns an opaque handle; Traits::destroy frees it.
template <class Traits>
class Handle {
 public:
  Handle() = default;
  explicit Handle(void* handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_ != nullptr) Traits::destroy(handle_);
  }
  void* get() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

struct StreamTraits {
  static void destroy(void* stream);
};
struct EventTraits {
  static void destroy(void* event);
};
struct DeviceBytesTraits {
  static void destroy(void* address);
};
struct MappedBytesTraits {
  static void destroy(void* address);
};
using Stream = Handle<StreamTraits>;
using Event = Handle<EventTraits>;
/// Device memory of replay's own: what a plan needs comes from DeviceMemory.
using DeviceBytes = Handle<DeviceBytesTraits>;

/// A stream that does not wait for the default stream.
Stream make_stream();
/// With or without a time stamp. The host spins when it waits for one.
Event make_event(bool timed);
DeviceBytes make_device_bytes(Bytes bytes);

/// Pinned host memory, zeroed, that every device of the process can read and write while it is written by the host.
class PinnedBytes {
 public:
  PinnedBytes() = default;
  explicit PinnedBytes(Bytes bytes);
  void* host() const { return handle_.get(); }
  /// Its address for the devices (unified addressing: the same on all of them).
  void* device() const { return device_; }

 private:
  Handle<MappedBytesTraits> handle_;
  void* device_ = nullptr;
};

/// Milliseconds between two timed events that have both completed.
float elapsed_ms(const Event& from, const Event& to);

/// "0000:1b:00.0" of the device.
std::string pci_bus_id(int device);

}  // namespace ebb::replay
