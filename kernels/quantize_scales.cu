// Scales from largest values on the GPU, padding included. A thread makes four scales of one row of a scale array (all
// rows but tensorwise's single scale are multiples of four long); the arrays are small beside the weights.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "kernels/quantize.hpp"
#include "kernels/quantize_math.hpp"
#include "kernels/quantize_shape.hpp"
#include "kernels/run_table.cuh"

namespace ebb::kernels {
namespace {

// One scale array: `down` x `across` largest values into the upper left of `stride` numbers a row.
enum : int { kLargest, kScales, kDown, kAcross, kStride, kFields };
constexpr std::int64_t kScalesOfBlock = kBlock * kWidth;

struct ScalePlace {
  int run;
  std::int64_t row, first, down, across, stride;
  std::int64_t scales;  // of the array
};

template <int kRuns>
__device__ ScalePlace find_scales(const RunTable<kFields, kRuns>& table) {
  const Tile tile = table.template find<kScalesOfBlock>(blockIdx.x);
  const std::int64_t* const field = table.offset[tile.run];
  const auto group = static_cast<std::uint32_t>(tile.number * kBlock + threadIdx.x);
  const auto groups = static_cast<std::uint32_t>(parts_of(field[kStride], kWidth));  // of a row
  return {.run = tile.run,
          .row = group / groups,
          .first = std::int64_t{group % groups} * kWidth,
          .down = field[kDown],
          .across = field[kAcross],
          .stride = field[kStride],
          .scales = tile.numel};
}

/// Calls f(number in the scale array, number among the largest values, -1: padding) for the thread's scales.
template <class F>
__device__ void each_scale(const ScalePlace& p, F f) {
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    const std::int64_t column = p.first + k, scale = p.row * p.stride + column;
    if (column >= p.stride || scale >= p.scales) continue;
    f(scale, p.row < p.down && column < p.across ? p.row : -1, column);
  }
}

// tensorwise: one; blockwise: largest values lie as the scales do.
template <bool kPowerOfTwo, int kRuns>
__global__ void __launch_bounds__(kBlock)
    scales_kernel(const float* all_largest, void* all_scales, const __grid_constant__ RunTable<kFields, kRuns> table) {
  const ScalePlace place = find_scales(table);
  const float* const largest = table.at(all_largest, place.run, kLargest);
  auto* const scales = reinterpret_cast<float*>(table.at(static_cast<char*>(all_scales), place.run, kScales));
  each_scale(place, [&](std::int64_t scale, std::int64_t row, std::int64_t) {
    scales[scale] = row < 0 ? 0 : __frcp_rn(scale_of_largest(largest[scale], kPowerOfTwo));
  });
}

template <int kRuns>
__global__ void __launch_bounds__(kBlock) mx_scales_kernel(const float* all_largest, void* all_scales,
                                                           const __grid_constant__ RunTable<kFields, kRuns> table) {
  const ScalePlace place = find_scales(table);
  const float* const largest = table.at(all_largest, place.run, kLargest);
  auto* const scales = table.at(static_cast<std::uint8_t*>(all_scales), place.run, kScales);
  each_scale(place, [&](std::int64_t scale, std::int64_t row, std::int64_t column) {
    scales[scale] = row < 0 ? 0 : e8m0_of_largest(largest[row * place.across + column]);
  });
}

using Entries = std::vector<RunEntry<kFields>>;

Entries row_entries(Scaling scaling, std::span<const QuantizedMatrix> matrices) {
  Entries entries;
  entries.reserve(matrices.size());
  for (const QuantizedMatrix& m : matrices) {
    switch (scaling) {
      case Scaling::tensorwise:
        entries.push_back({.offset = {m.largest, m.row_scales, 1, 1, 1}, .numel = 1, .shift = 0});
        break;
      case Scaling::blockwise:
        entries.push_back({.offset = {m.largest, m.row_scales, parts_of(m.rows, kScaleTile),
                                      parts_of(m.columns, kScaleTile), tile_stride(m.columns)},
                           .numel = parts_of(m.rows, kScaleTile) * tile_stride(m.columns),
                           .shift = 0});
        break;
      case Scaling::mxfp8:
        entries.push_back(
            {.offset = {m.largest, m.row_scales, m.rows, parts_of(m.columns, kMxBlock), mx_row_stride(m.columns)},
             .numel = mx_row_rows(m.rows) * mx_row_stride(m.columns),
             .shift = 0});
        break;
    }
  }
  return entries;
}

Entries mx_column_entries(std::span<const QuantizedMatrix> matrices) {
  Entries entries;
  entries.reserve(matrices.size());
  for (const QuantizedMatrix& m : matrices) {
    entries.push_back({.offset = {m.largest + 4 * mx_largest_columns(m.rows, m.columns), m.column_scales,
                                  parts_of(m.rows, kMxBlock), m.columns, mx_column_stride(m.columns)},
                       .numel = mx_column_rows(m.rows) * mx_column_stride(m.columns),
                       .shift = 0});
  }
  return entries;
}

int launch_mx(const float* largest, void* scales, const Entries& entries, cudaStream_t stream) {
  return launch_runs(entries, kScalesOfBlock,
                     [&]<int kRuns>(const RunTable<kFields, kRuns>& table, unsigned blocks) -> int {
                       return launch_kernel(mx_scales_kernel<kRuns>, blocks, stream, largest, scales, table);
                     });
}

template <bool kPowerOfTwo>
int launch_fp32(const float* largest, void* scales, const Entries& entries, cudaStream_t stream) {
  return launch_runs(entries, kScalesOfBlock,
                     [&]<int kRuns>(const RunTable<kFields, kRuns>& table, unsigned blocks) -> int {
                       return launch_kernel(scales_kernel<kPowerOfTwo, kRuns>, blocks, stream, largest, scales, table);
                     });
}

}  // namespace

int launch_scales(Scaling scaling, const QuantizedArrays& arrays, std::span<const QuantizedMatrix> matrices,
                  void* stream) {
  for (const QuantizedMatrix& m : matrices) {
    if (m.rows < 1 || m.columns < 1) return cudaErrorInvalidValue;
  }
  const auto on = static_cast<cudaStream_t>(stream);
  const Entries entries = row_entries(scaling, matrices);
  switch (scaling) {
    case Scaling::tensorwise:
      return launch_fp32<false>(arrays.largest, arrays.row_scales, entries, on);
    case Scaling::blockwise:
      return launch_fp32<true>(arrays.largest, arrays.row_scales, entries, on);
    case Scaling::mxfp8: {
      const int code = launch_mx(arrays.largest, arrays.row_scales, entries, on);
      if (code != cudaSuccess) return code;
      return launch_mx(arrays.largest, arrays.column_scales, mx_column_entries(matrices), on);
    }
  }
  return cudaErrorInvalidValue;
}

}  // namespace ebb::kernels
