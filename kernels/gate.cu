// Waiting on the GPU, by the global timer: nanoseconds of the device, whatever its clock rate.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/gate.hpp"

namespace ebb::kernels {
namespace {

__device__ std::uint64_t now_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// The host's writes reach the device through the mapped page; volatile makes every look a read of it.
__global__ void gate_kernel(const volatile int* flag, int value, std::uint64_t timeout_ns, volatile int* timed_out) {
  const std::uint64_t begin = now_ns();
  while (*flag < value) {
    if (now_ns() - begin > timeout_ns) {
      if (timed_out != nullptr) *timed_out = 1;
      return;
    }
    __nanosleep(100);  // leaves the link to others between two looks
  }
  __threadfence_system();
}

__global__ void delay_kernel(std::uint64_t ns) {
  const std::uint64_t begin = now_ns();
  while (now_ns() - begin < ns) __nanosleep(100);
}

}  // namespace

int launch_gate(const int* flag, int value, std::uint64_t timeout_ns, int* timed_out, void* stream) {
  if (flag == nullptr) return cudaErrorInvalidValue;
  gate_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(flag, value, timeout_ns, timed_out);
  return cudaGetLastError();
}

int launch_delay(std::uint64_t ns, void* stream) {
  delay_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(ns);
  return cudaGetLastError();
}

}  // namespace ebb::kernels
