#include <cuda_runtime_api.h>

#include "kernels/adamw_math.cuh"
#include "tests/kernels/gpu/divide.hpp"

namespace ebb::kernels::gpu {
namespace {

constexpr std::uint32_t kOne = 0x3f800000;
constexpr unsigned kThreads = 256;

__global__ void reciprocals(float scale, float* out) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  const float y = __fmul_rn(__uint_as_float(kOne + i), scale);
  float approximation;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(approximation) : "f"(y));
  out[i] = quick::refined(y, approximation);
}

__global__ void roots(float scale, float* out) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = quick::root(__fmul_rn(__uint_as_float(kOne + i), scale));
}

__device__ std::uint32_t next(std::uint32_t& state) {  // Marsaglia's xorshift, 2003: 13, 17, 5
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

// Any significand, an exponent of [low, high).
__device__ float any(std::uint32_t& state, int low, int high) {
  const std::uint32_t exponent = 127 + low + next(state) % (high - low);
  return __uint_as_float(exponent << 23 | next(state) >> 9);
}

__global__ void compare_quotients(std::uint32_t seed, unsigned long long* count) {
  constexpr int kPairs = 4096;  // a thread
  std::uint32_t state = (blockIdx.x * kThreads + threadIdx.x + 1) * 2654435761U ^ seed;
  if (state == 0) state = 1;
  unsigned long long wrong = 0;
  for (int n = 0; n < kPairs; ++n) {
    const float x = any(state, -80, 60), y = any(state, -45, 31);
    wrong += __float_as_uint(quick::quotient(x, y)) != __float_as_uint(__fdiv_rn(x, y));
  }
  atomicAdd(count, wrong);
}

}  // namespace

int launch_reciprocals(float scale, float* out) {
  reciprocals<<<(1U << 23) / kThreads, kThreads>>>(scale, out);
  return cudaGetLastError();
}

int launch_roots(float scale, float* out) {
  roots<<<(1U << 24) / kThreads, kThreads>>>(scale, out);
  return cudaGetLastError();
}

int launch_compare_quotients(std::uint32_t seed, unsigned blocks, unsigned long long* count) {
  compare_quotients<<<blocks, kThreads>>>(seed, count);
  return cudaGetLastError();
}

}  // namespace ebb::kernels::gpu
