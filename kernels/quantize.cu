// Largest values, scales and E4M3 bytes on the GPU. A block takes a part of 32 x 128 elements (quantize_pieces.cuh):
// eight vectors a thread, all read before the first is worked on.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/quantize.hpp"
#include "kernels/quantize_math.hpp"
#include "kernels/quantize_pieces.cuh"

namespace ebb::kernels {
namespace {

constexpr unsigned kAll = 0xffffffff;
constexpr int kWarps = kBlock / 32;

__device__ std::uint32_t magnitude(float x) { return __float_as_uint(x) & 0x7fffffff; }

// Rounding to bf16 keeps order, so the largest of rounded values is the rounded largest value; NaN stays the largest.
__device__ std::uint32_t rounded(std::uint32_t magnitude) {
  return static_cast<std::uint32_t>(Values<Type::bf16>::put(__uint_as_float(magnitude)) & 0x7fff) << 16;
}

// 0 is what is there at least.
__device__ void raise(std::uint32_t* largest, std::uint32_t value) {
  if (value != 0) atomicMax(largest, rounded(value));
}

// The largest value of a whole part, of tensorwise scaling or of a quarter of a tile.
__device__ void raise_part(std::uint32_t* largest, std::uint32_t value) {
  __shared__ std::uint32_t warps[kWarps];
  value = __reduce_max_sync(kAll, value);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kWarps; ++i) value = max(value, warps[i]);
  raise(largest, value);
}

// mxfp8: eight threads share 32 elements of a row. After three exchanges each knows the largest of all their rows, and
// thread l of them writes row l's. Columns: over the rows of a thread, then over warps.
__device__ void raise_blocks(std::uint32_t* largest, const Spot& spot, std::int64_t rows,
                             const std::uint32_t (&x)[kRowsOfThread][4]) {
  __shared__ std::uint32_t columns[kWarps][kPartColumns];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  std::uint32_t mine = 0;
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    std::uint32_t row = max(max(x[i][0], x[i][1]), max(x[i][2], x[i][3]));
#pragma unroll
    for (int other = 1; other < 8; other *= 2) row = max(row, __shfl_xor_sync(kAll, row, other));
    if (lane % 8 == i) mine = row;
  }
  const std::int64_t stride = parts_of(spot.columns, kMxBlock);
  // A value that is not 0 is the piece's, so its row and block exist.
  raise(largest + (spot.row + lane % 8) * stride + spot.column / kMxBlock, mine);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    std::uint32_t column = 0;
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) column = max(column, x[i][k]);
    columns[warp][lane * kWidth + k] = column;
  }
  __syncthreads();
  std::uint32_t column = columns[0][threadIdx.x];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) column = max(column, columns[i][threadIdx.x]);
  const std::int64_t first = spot.column - lane * kWidth;
  raise(largest + mx_largest_columns(rows, spot.columns) + spot.row / kMxBlock * spot.columns + first + threadIdx.x,
        column);
}

template <Scaling kScaling, int kRuns>
__global__ void __launch_bounds__(kBlock)
    largest_kernel(const void* masters, float* largest, const __grid_constant__ PieceTable<kRuns> table) {
  const Spot spot = find_spot(table, blockIdx.x);
  float x[kRowsOfThread][4];
  read_masters(x, table.at(masters, spot.run, kValues), spot);
  std::uint32_t bits[kRowsOfThread][4];
  std::uint32_t all = 0;
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      bits[i][k] = magnitude(x[i][k]);
      all = max(all, bits[i][k]);
    }
  }
  auto* const out = reinterpret_cast<std::uint32_t*>(table.at(largest, spot.run, kLargest));
  if constexpr (kScaling == Scaling::tensorwise) raise_part(out, all);
  if constexpr (kScaling == Scaling::blockwise) {
    raise_part(out + spot.row / kScaleTile * tile_stride(spot.columns) + spot.column / kScaleTile, all);
  }
  if constexpr (kScaling == Scaling::mxfp8) raise_blocks(out, spot, table.offset[spot.run][kRows], bits);
}

// bf16(x) as the fp32 it is.
__device__ float narrowed(float x) { return Values<Type::bf16>::get(Values<Type::bf16>::put(x)); }

__device__ std::uint32_t quantized(const float (&x)[4], const float (&scale)[4]) {
  const auto two = [&](int k) {
    return static_cast<std::uint32_t>(__nv_cvt_float2_to_fp8x2(
        make_float2(__fmul_rn(x[k], scale[k]), __fmul_rn(x[k + 1], scale[k + 1])), __NV_SATFINITE, __NV_E4M3));
  };
  return two(0) | two(2) << 16;
}

// `bytes` is the piece's first element.
__device__ void write_bytes(void* bytes, const Spot& spot, int i, std::uint32_t four) {
  const std::int64_t element = spot.at(i);
  if (spot.whole) {
    store<Type::fp8_e4m3>(bytes, element, four);
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (spot.has(element, k)) static_cast<std::uint8_t*>(bytes)[element + k] = element_bits(four, k);
  }
}

// mxfp8: the multipliers of four columns, of one row. Outside the piece any will do that can be read.
__device__ void column_multipliers(float (&scale)[4], const std::uint8_t* scales, const Spot& spot) {
  const std::uint8_t* const row = scales + spot.row / kMxBlock * mx_column_stride(spot.columns);
#pragma unroll
  for (int k = 0; k < 4; ++k) scale[k] = reciprocal_of_e8m0(row[spot.column + k]);  // padded to 128: all exist
}

template <Scaling kScaling, int kRuns>
__global__ void __launch_bounds__(kBlock) quantize_kernel(const void* masters, const QuantizedArrays arrays,
                                                          const __grid_constant__ PieceTable<kRuns> table) {
  const Spot spot = find_spot(table, blockIdx.x);
  float x[kRowsOfThread][4];
  read_masters(x, table.at(masters, spot.run, kValues), spot);
  auto* const rows = table.at(static_cast<std::uint8_t*>(arrays.rows), spot.run, kRow) + spot.first;
  if constexpr (kScaling == Scaling::mxfp8) {
    auto* const columns = table.at(static_cast<std::uint8_t*>(arrays.columns), spot.run, kColumn) + spot.first;
    const auto* const row_scales = table.at(static_cast<const std::uint8_t*>(arrays.row_scales), spot.run, kRowScales);
    float down[4];
    column_multipliers(down, table.at(static_cast<const std::uint8_t*>(arrays.column_scales), spot.run, kColumnScales),
                       spot);
    const std::int64_t stride = mx_row_stride(spot.columns);
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) {
      // Rows are padded to 128 and blocks of a row to 4, so what is outside exists too.
      const float across = reciprocal_of_e8m0(row_scales[(spot.row + i) * stride + spot.column / kMxBlock]);
      const float values[4] = {narrowed(x[i][0]), narrowed(x[i][1]), narrowed(x[i][2]), narrowed(x[i][3])};
      write_bytes(rows, spot, i, quantized(values, {across, across, across, across}));
      write_bytes(columns, spot, i, quantized(values, down));
    }
  } else {
    const float* largest = table.at(arrays.largest, spot.run, kLargest);
    if constexpr (kScaling == Scaling::blockwise) {
      largest += spot.row / kScaleTile * tile_stride(spot.columns) + spot.column / kScaleTile;
    }
    const float scale = scale_of_largest(*largest, kScaling == Scaling::blockwise);
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) {
      const float values[4] = {narrowed(x[i][0]), narrowed(x[i][1]), narrowed(x[i][2]), narrowed(x[i][3])};
      write_bytes(rows, spot, i, quantized(values, {scale, scale, scale, scale}));
    }
  }
}

template <Scaling kScaling>
int find_largest_of(const void* masters, float* largest, std::span<const QuantizedPiece> pieces, cudaStream_t stream) {
  const auto entries = piece_entries(
      kScaling, pieces, [&](const QuantizedPiece& p) { return vectors_fit(masters, p.values, 4, p.first); });
  return launch_runs<kFewRuns, kMaxPieces>(
      entries, kPart, [&]<int kRuns>(const PieceTable<kRuns>& table, unsigned blocks) -> int {
        return launch_kernel(largest_kernel<kScaling, kRuns>, blocks, stream, masters, largest, table);
      });
}

template <Scaling kScaling>
int quantize_of(const void* masters, const QuantizedArrays& arrays, std::span<const QuantizedPiece> pieces,
                cudaStream_t stream) {
  const auto entries = piece_entries(kScaling, pieces, [&](const QuantizedPiece& p) {
    return vectors_fit(masters, p.values, 4, p.first) && vectors_fit(arrays.rows, p.matrix.row, 1, 0) &&
           (kScaling != Scaling::mxfp8 || vectors_fit(arrays.columns, p.matrix.column, 1, 0));
  });
  return launch_runs<kFewRuns, kMaxPieces>(
      entries, kPart, [&]<int kRuns>(const PieceTable<kRuns>& table, unsigned blocks) -> int {
        return launch_kernel(quantize_kernel<kScaling, kRuns>, blocks, stream, masters, arrays, table);
      });
}

}  // namespace

int launch_find_largest(Scaling scaling, const void* masters, const QuantizedArrays& arrays,
                        std::span<const QuantizedPiece> pieces, void* stream) {
  if (!pieces_are_valid(pieces)) return cudaErrorInvalidValue;
  const auto on = static_cast<cudaStream_t>(stream);
  switch (scaling) {
    case Scaling::tensorwise:
      return find_largest_of<Scaling::tensorwise>(masters, arrays.largest, pieces, on);
    case Scaling::blockwise:
      return find_largest_of<Scaling::blockwise>(masters, arrays.largest, pieces, on);
    case Scaling::mxfp8:
      return find_largest_of<Scaling::mxfp8>(masters, arrays.largest, pieces, on);
  }
  return cudaErrorInvalidValue;
}

int launch_quantize(Scaling scaling, const void* masters, const QuantizedArrays& arrays,
                    std::span<const QuantizedPiece> pieces, void* stream) {
  if (!pieces_are_valid(pieces)) return cudaErrorInvalidValue;
  const auto on = static_cast<cudaStream_t>(stream);
  switch (scaling) {
    case Scaling::tensorwise:
      return quantize_of<Scaling::tensorwise>(masters, arrays, pieces, on);
    case Scaling::blockwise:
      return quantize_of<Scaling::blockwise>(masters, arrays, pieces, on);
    case Scaling::mxfp8:
      return quantize_of<Scaling::mxfp8>(masters, arrays, pieces, on);
  }
  return cudaErrorInvalidValue;
}

}  // namespace ebb::kernels
