// Quantised weights back into values on the GPU: parts of 32 x 128 elements as in quantize.cu. Transposed copies are
// read 32 bytes of a column at a time and turned in shared memory.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/quantize.hpp"
#include "kernels/quantize_math.hpp"
#include "kernels/quantize_pieces.cuh"

namespace ebb::kernels {
namespace {

constexpr int kWarps = kBlock / 32;

/// Where a launch reads and writes, beside its table.
struct Dequantizing {
  const std::uint8_t* bytes;
  const std::uint8_t* scales;
  void* values;
  Type type;
  bool columns;     // mxfp8: of the column-wise copy; blockwise: transposed scales
  bool transposed;  // tensorwise, blockwise: bytes of the column-wise copy
};
constexpr int kBytes = kRow, kScales = kRowScales;  // in the table

// Four bytes of each of the thread's rows.
__device__ void read_rows(std::uint32_t (&four)[kRowsOfThread], const std::uint8_t* bytes, const Spot& spot) {
  bytes += spot.first;
  if (spot.whole) {
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) four[i] = load<Type::fp8_e4m3>(bytes, spot.at(i));
    return;
  }
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    const std::int64_t element = spot.at(i);
    four[i] = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (spot.has(element, k)) four[i] |= static_cast<std::uint32_t>(bytes[element + k]) << (8 * k);
    }
  }
}

// The same of a transposed copy of `rows` bytes a column: a warp reads 32 rows of a column, 32 columns one after
// another.
__device__ void read_transposed(std::uint32_t (&four)[kRowsOfThread], const std::uint8_t* bytes, const Spot& spot,
                                std::int64_t rows) {
  __shared__ std::uint32_t part[kPartColumns][kPartRows / 4 + 1];  // four rows a word
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::int64_t row = spot.row - warp * kRowsOfThread + lane, column = spot.column - lane * kWidth;
#pragma unroll 8
  for (int c = warp; c < kPartColumns; c += kWarps) {
    const std::int64_t element = row * spot.columns + column + c - spot.first;
    const bool own = column + c < spot.columns && element >= 0 && element < spot.numel;
    reinterpret_cast<std::uint8_t*>(part[c])[lane] = own ? bytes[(column + c) * rows + row] : 0;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) four[i] = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int word = 0; word < kRowsOfThread / 4; ++word) {
      const std::uint32_t four_rows = part[lane * kWidth + k][warp * (kRowsOfThread / 4) + word];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        four[4 * word + i] |= static_cast<std::uint32_t>(element_bits(four_rows, i)) << (8 * k);
      }
    }
  }
}

template <Type kType>
__device__ void write_values(void* values, const Spot& spot, int i, const float (&x)[4]) {
  const std::int64_t element = spot.at(i);
  if (spot.whole) {
    store<kType>(values, element, vector_of<kType>(x));
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (spot.has(element, k)) elements<kType>(values)[element + k] = Values<kType>::put(x[k]);
  }
}

__device__ float value_of_byte(std::uint32_t four, int k) {
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(element_bits(four, k), __NV_E4M3)));
}

template <Scaling kScaling, int kRuns>
__global__ void __launch_bounds__(kBlock)
    dequantize_kernel(const Dequantizing d, const __grid_constant__ PieceTable<kRuns> table) {
  const Spot spot = find_spot(table, blockIdx.x);
  const std::int64_t rows = table.offset[spot.run][kRows];
  const std::uint8_t* const bytes = table.at(d.bytes, spot.run, kBytes);
  const std::uint8_t* const scales = table.at(d.scales, spot.run, kScales);
  std::uint32_t four[kRowsOfThread];
  if (kScaling != Scaling::mxfp8 && d.transposed) {
    read_transposed(four, bytes, spot, rows);
  } else {
    read_rows(four, bytes, spot);
  }
  // mxfp8: a row has one scale or each of its elements its own; else one for all.
  float scale[4];
  if constexpr (kScaling == Scaling::mxfp8) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t at = spot.row / kMxBlock * mx_column_stride(spot.columns) + spot.column + k;
      scale[k] = d.columns ? value_of_e8m0(scales[at]) : 0;
    }
  } else {
    std::int64_t at = 0;
    if constexpr (kScaling == Scaling::blockwise) {
      const std::int64_t row = spot.row / kScaleTile, column = spot.column / kScaleTile;
      at = d.columns ? column * tile_stride(rows) + row : row * tile_stride(spot.columns) + column;
    }
    scale[0] = scale[1] = scale[2] = scale[3] = reinterpret_cast<const float*>(scales)[at];
  }
  void* const values = table.at(d.values, spot.run, kValues);
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    if (kScaling == Scaling::mxfp8 && !d.columns) {
      const std::int64_t at = (spot.row + i) * mx_row_stride(spot.columns) + spot.column / kMxBlock;
      scale[0] = scale[1] = scale[2] = scale[3] = value_of_e8m0(scales[at]);
    }
    float x[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) x[k] = __fmul_rn(value_of_byte(four[i], k), scale[k]);
    if (d.type == Type::bf16) {
      write_values<Type::bf16>(values, spot, i, x);
    } else {
      write_values<Type::fp32>(values, spot, i, x);
    }
  }
}

template <Scaling kScaling>
int dequantize_of(const Dequantizing& d, std::span<const QuantizedPiece> pieces, cudaStream_t stream) {
  // A transposed copy has rows and columns whatever its scales.
  const Scaling shape = d.transposed ? Scaling::blockwise : kScaling;
  const auto entries = piece_entries(shape, pieces, [&](const QuantizedPiece& p) {
    return vectors_fit(d.values, p.values, bytes_of(d.type), p.first) &&
           (d.transposed || vectors_fit(d.bytes, p.matrix.row, 1, 0));
  });
  return launch_runs<kFewRuns, kMaxPieces>(
      entries, kPart, [&]<int kRuns>(const PieceTable<kRuns>& table, unsigned blocks) -> int {
        return launch_kernel(dequantize_kernel<kScaling, kRuns>, blocks, stream, d, table);
      });
}

}  // namespace

int launch_dequantize(Scaling scaling, const QuantizedArrays& arrays, const DequantizeTarget& target,
                      std::span<const QuantizedPiece> pieces, void* stream) {
  if (!pieces_are_valid(pieces)) return cudaErrorInvalidValue;
  if (target.type != Type::bf16 && target.type != Type::fp32) return cudaErrorInvalidValue;
  const bool columns = target.from_columns, own_scales = columns && scaling != Scaling::tensorwise;
  const Dequantizing d{
      .bytes = static_cast<const std::uint8_t*>(columns ? arrays.columns : arrays.rows),
      .scales = static_cast<const std::uint8_t*>(own_scales ? arrays.column_scales : arrays.row_scales),
      .values = target.values,
      .type = target.type,
      .columns = own_scales,
      .transposed = columns && scaling != Scaling::mxfp8};
  std::vector<QuantizedPiece> chosen(pieces.begin(), pieces.end());
  for (QuantizedPiece& piece : chosen) {
    if (columns) piece.matrix.row = piece.matrix.column;
    if (own_scales) piece.matrix.row_scales = piece.matrix.column_scales;
  }
  const auto on = static_cast<cudaStream_t>(stream);
  switch (scaling) {
    case Scaling::tensorwise:
      return dequantize_of<Scaling::tensorwise>(d, chosen, on);
    case Scaling::blockwise:
      return dequantize_of<Scaling::blockwise>(d, chosen, on);
    case Scaling::mxfp8:
      return dequantize_of<Scaling::mxfp8>(d, chosen, on);
  }
  return cudaErrorInvalidValue;
}

}  // namespace ebb::kernels
