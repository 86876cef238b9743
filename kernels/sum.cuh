// The fixed-order sum (sum_order.hpp) on the device, and sums of integers in any order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/sum_order.hpp"

namespace ebb::kernels {

/// The sum over a block of kThreads threads, valid in thread 0. Every thread of the block must call it, once a kernel.
template <int kThreads, class T>
__device__ T block_sum(T x) {
  constexpr int kWarps = kThreads / kFold;
  __shared__ T warps[kWarps];
#pragma unroll
  for (int offset = kFold / 2; offset > 0; offset /= 2) x += __shfl_down_sync(0xffffffff, x, offset);
  if (threadIdx.x % kFold == 0) warps[threadIdx.x / kFold] = x;
  __syncthreads();
  if (threadIdx.x >= kFold) return x;
  x = threadIdx.x < kWarps ? warps[threadIdx.x] : T{};
#pragma unroll
  for (int offset = kWarps / 2; offset > 0; offset /= 2) x += __shfl_down_sync(0xffffffff, x, offset);
  return x;
}

/// Enqueues the sum of the tiles' sums, to wherever is not null. NaN is written as the GPU's (fp32) or as the default
/// quiet NaN (double).
[[nodiscard]] int launch_final_sum(const double* tiles, std::int64_t count, float* narrow, double* wide,
                                   cudaStream_t stream);

}  // namespace ebb::kernels
