#include "replay/cuda.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "replay/execute.hpp"

namespace ebb::replay {

namespace {

cudaEvent_t event_of(const Event& event) { return static_cast<cudaEvent_t>(event.get()); }

const char* cure_for(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "; free device memory, or plan with a smaller budget";
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
      return "; run where a GPU and its driver are, or with --device cpu";
    case cudaErrorNoKernelImageForDevice:
      return "; build for this GPU: cmake -D CMAKE_CUDA_ARCHITECTURES=native";
    default:
      return "";
  }
}

}  // namespace

void check(int error, const char* call) {
  if (error == cudaSuccess) return;
  const auto code = static_cast<cudaError_t>(error);
  int device = -1;
  if (cudaGetDevice(&device) != cudaSuccess) device = -1;
  (void)cudaGetLastError();  // what is not sticky is said once
  throw CudaError(fmt::format("{} on device {}: {} ({}){}", call, device, cudaGetErrorName(code),
                              cudaGetErrorString(code), cure_for(code)));
}

void set_device(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }

// Destructors report nothing: they run on the way out of an error, whose message counts.
void StreamTraits::destroy(void* stream) { (void)cudaStreamDestroy(static_cast<cudaStream_t>(stream)); }
void EventTraits::destroy(void* event) { (void)cudaEventDestroy(static_cast<cudaEvent_t>(event)); }
void DeviceBytesTraits::destroy(void* address) { (void)cudaFree(address); }
void MappedBytesTraits::destroy(void* address) { (void)cudaFreeHost(address); }

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return Stream(stream);
}

Event make_event(bool timed) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
  return Event(event);
}

DeviceBytes make_device_bytes(Bytes bytes) {
  void* address = nullptr;
  check(cudaMalloc(&address, static_cast<std::size_t>(bytes.value)), "cudaMalloc");
  return DeviceBytes(address);
}

PinnedBytes::PinnedBytes(Bytes bytes) {
  void* address = nullptr;
  check(cudaHostAlloc(&address, static_cast<std::size_t>(bytes.value), cudaHostAllocPortable | cudaHostAllocMapped),
        "cudaHostAlloc");
  handle_ = Handle<MappedBytesTraits>(address);
  std::memset(address, 0, static_cast<std::size_t>(bytes.value));
  check(cudaHostGetDevicePointer(&device_, address, 0), "cudaHostGetDevicePointer");
}

float elapsed_ms(const Event& from, const Event& to) {
  float ms = 0;
  check(cudaEventElapsedTime(&ms, event_of(from), event_of(to)), "cudaEventElapsedTime");
  return ms;
}

std::string pci_bus_id(int device) {
  std::array<char, 32> id{};
  check(cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), device), "cudaDeviceGetPCIBusId");
  return id.data();
}

}  // namespace ebb::replay
