// What the GPU programs share: checked calls, device memory, event timing, and byte-for-byte comparison with the host.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

namespace ebb::kernels::gpu {

inline void check(int code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(static_cast<cudaError_t>(code)));
  std::exit(3);
}

/// Device memory for the life of the object.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::int64_t bytes) {
    check(cudaMalloc(&data_, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))), "cudaMalloc");
  }
  ~DeviceBytes() { cudaFree(data_); }
  DeviceBytes(DeviceBytes&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  DeviceBytes& operator=(DeviceBytes&&) = delete;

  char* get() const { return static_cast<char*>(data_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

inline void copy(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
}

inline void finish(const char* what) { check(cudaDeviceSynchronize(), what); }

/// The same bytes on the host and on the device. A reference works on one, a kernel on the other; then they must be the
/// same again, everywhere: also before, between and behind the elements that were meant.
class Twin {
 public:
  explicit Twin(std::vector<char> bytes) : host_(std::move(bytes)), device_(static_cast<std::int64_t>(host_.size())) {
    copy(device_.get(), host_.data(), host_.size());
  }
  char* host() { return host_.data(); }
  char* device() { return device_.get(); }
  std::size_t size() const { return host_.size(); }

  bool same(const char* name) {
    std::vector<char> got(host_.size());
    copy(got.data(), device_.get(), got.size());
    const auto [want, bad] = std::mismatch(host_.begin(), host_.end(), got.begin());
    if (want == host_.end()) return true;
    std::printf("  %s differs first at byte %td: 0x%02x, must be 0x%02x\n", name, want - host_.begin(),
                static_cast<unsigned>(static_cast<unsigned char>(*bad)),
                static_cast<unsigned>(static_cast<unsigned char>(*want)));
    return false;
  }

 private:
  std::vector<char> host_;
  DeviceBytes device_;
};

/// Median seconds of one `work` on the default stream: `repeats` times `calls` of them back to back between two events,
/// after three warm-ups.
template <class Work>
double median_seconds(Work work, int repeats, int calls) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> milliseconds;
  for (int i = -3; i < repeats; ++i) {
    check(cudaEventRecord(begin), "cudaEventRecord");
    for (int call = 0; call < calls; ++call) work();
    check(cudaEventRecord(end), "cudaEventRecord");
    check(cudaEventSynchronize(end), "kernel");
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, begin, end), "cudaEventElapsedTime");
    if (i >= 0) milliseconds.push_back(elapsed);
  }
  check(cudaEventDestroy(begin), "cudaEventDestroy");
  check(cudaEventDestroy(end), "cudaEventDestroy");
  std::sort(milliseconds.begin(), milliseconds.end());
  return static_cast<double>(milliseconds[milliseconds.size() / 2]) / 1e3 / calls;
}

}  // namespace ebb::kernels::gpu
