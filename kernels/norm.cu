// Sum of squares in two stages and the clip coefficient, on the GPU. A block sums one tile: each of 128 threads loads
// eight vectors before it adds them, so that enough reads are under way to fill the memory's latency.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "kernels/norm.hpp"
#include "kernels/plain_runs.cuh"
#include "kernels/run_table.cuh"
#include "kernels/sum.cuh"
#include "kernels/values.cuh"

namespace ebb::kernels {
namespace {

constexpr std::int64_t kRow = kBlock * kWidth;
constexpr int kRows = kSumTile / kRow;
constexpr int kAtOnce = 8;  // rows
static_assert(kRow == kSumLanes && kRows % kAtOnce == 0);

// fma rounds once, and the square is exact in double: the bits of a product and a sum.
__device__ void add_square(double& lane, float x) { lane = __fma_rn(static_cast<double>(x), x, lane); }

template <Type kType, int kRuns>
__global__ void __launch_bounds__(kBlock)
    squares_kernel(const void* base, const __grid_constant__ RunTable<kPlainArrays, kRuns> table, double* tiles) {
  const Tile tile = table.template find<kSumTile>(blockIdx.x);
  const void* x = table.at(base, tile.run, kOffset);
  double lanes[4] = {};
  const std::int64_t first = tile.begin + threadIdx.x * kWidth;
  if (tile.whole) {
    for (int row = 0; row < kRows; row += kAtOnce) {
      Vector<kType> v[kAtOnce];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) v[n] = load<kType>(x, first + (row + n) * kRow);
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
#pragma unroll
        for (int k = 0; k < 4; ++k) add_square(lanes[k], element<kType>(v[n], k));
      }
    }
  } else {
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const std::int64_t i = first + row * kRow + k;
        if (i < tile.numel) add_square(lanes[k], Values<kType>::get(elements<kType>(x)[i]));
      }
    }
  }
  const double sum = block_sum<kBlock>(__dadd_rn(__dadd_rn(lanes[0], lanes[1]), __dadd_rn(lanes[2], lanes[3])));
  if (threadIdx.x == 0) tiles[blockIdx.x] = sum;
}

// Tiles are counted from a run's first element, so vectors are aligned only where that is.
std::vector<RunEntry<kPlainArrays>> entries_of(Type type, const void* base, std::span<const Run> runs) {
  std::vector<RunEntry<kPlainArrays>> entries = plain_entries(type, base, runs);
  for (RunEntry<kPlainArrays>& entry : entries) {
    if (entry.shift != 0) entry.shift = kUnaligned;
  }
  return entries;
}

template <Type kType>
int launch_squares(const void* base, std::span<const Run> runs, double* tiles, cudaStream_t stream) {
  return launch_runs(entries_of(kType, base, runs), kSumTile,
                     [&]<int kRuns>(const RunTable<kPlainArrays, kRuns>& table, unsigned blocks) -> int {
                       double* const first = tiles;
                       tiles += blocks;
                       return launch_kernel(squares_kernel<kType, kRuns>, blocks, stream, base, table, first);
                     });
}

__global__ void clip_kernel(const Clip clip, float max_norm, float inverse_scale) {
  const float sum = *clip.sum;
  const float norm = __fmul_rn(__fsqrt_rn(sum), inverse_scale);
  const float quotient = __fdiv_rn(max_norm, __fadd_rn(norm, 1e-6F));
  if (clip.norm != nullptr) *clip.norm = norm;
  *clip.coefficient = __fmul_rn(inverse_scale, quotient < 1 ? quotient : 1);
  if (clip.nonfinite != nullptr) *clip.nonfinite = isfinite(sum) ? 0 : 1;
}

}  // namespace

int launch_sum_of_squares(Type type, const void* base, std::span<const Run> runs, void* workspace, float* sum,
                          void* stream) {
  if (type != Type::fp32 && type != Type::bf16) return cudaErrorInvalidValue;
  if (!plain_runs_are_valid(runs)) return cudaErrorInvalidValue;
  const auto on = static_cast<cudaStream_t>(stream);
  auto* tiles = static_cast<double*>(workspace);
  const int code = type == Type::bf16 ? launch_squares<Type::bf16>(base, runs, tiles, on)
                                      : launch_squares<Type::fp32>(base, runs, tiles, on);
  if (code != cudaSuccess) return code;
  const auto count = sum_of_squares_workspace(runs) / static_cast<std::int64_t>(sizeof(double));
  return launch_final_sum(tiles, count, sum, nullptr, on);
}

int launch_clip_coefficient(const Clip& clip, float max_norm, void* stream, float inverse_scale) {
  if (clip.sum == nullptr || clip.coefficient == nullptr) return cudaErrorInvalidValue;
  clip_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(clip, max_norm, inverse_scale);
  return cudaGetLastError();
}

}  // namespace ebb::kernels
