// Transposed copies of quantised weights on the GPU. A block turns a tile of 128 x 128 bytes: rows of it are read as
// words of four, squares of four by four bytes are turned in registers, and shared memory holds the turned tile for
// writing its rows. The word of rows 4 q ... and column c lies at [c][q ^ (c / 4)]: neither way of access then meets a
// bank twice.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "kernels/quantize.hpp"
#include "kernels/quantize_shape.hpp"
#include "kernels/run_table.cuh"

namespace ebb::kernels {
namespace {

enum : int { kRow, kColumn, kRowScales, kColumnScales, kRows, kColumns, kFields };
constexpr int kTile = 128;
constexpr int kWords = kTile / 4;  // in a row of the tile
constexpr std::int64_t kTileBytes = kTile * kTile;
static_assert(kTile == kScaleTile && kWords == 32 && kBlock % kWords == 0);

/// A tile of a row-major matrix of bytes: [rows, columns] are what is left of it from the tile's first byte on,
/// `stride` lies between rows. `whole`: 128 x 128 are there, and words are aligned.
struct ByteTile {
  std::uint8_t* bytes;
  std::int64_t rows, columns, stride;

  /// Bytes (row, column) ... (row, column + 3); 0 for those outside.
  __device__ std::uint32_t read(int row, int column) const {
    std::uint32_t four = 0;
    for (int k = 0; k < 4; ++k) {
      if (row < rows && column + k < columns) {
        four |= static_cast<std::uint32_t>(bytes[row * stride + column + k]) << (8 * k);
      }
    }
    return four;
  }
  __device__ void write(int row, int column, std::uint32_t four) const {
    for (int k = 0; k < 4; ++k) {
      if (row < rows && column + k < columns) {
        bytes[row * stride + column + k] = static_cast<std::uint8_t>(four >> (8 * k));
      }
    }
  }
  __device__ std::uint32_t& word(int row, int column) const {
    return *reinterpret_cast<std::uint32_t*>(bytes + row * stride + column);
  }
};

// Four rows of four bytes become four columns.
__device__ void turn(std::uint32_t (&x)[4]) {
  const std::uint32_t low01 = __byte_perm(x[0], x[1], 0x5140), high01 = __byte_perm(x[0], x[1], 0x7362);
  const std::uint32_t low23 = __byte_perm(x[2], x[3], 0x5140), high23 = __byte_perm(x[2], x[3], 0x7362);
  x[0] = __byte_perm(low01, low23, 0x5410), x[1] = __byte_perm(low01, low23, 0x7632);
  x[2] = __byte_perm(high01, high23, 0x5410), x[3] = __byte_perm(high01, high23, 0x7632);
}

// The scale of the tile (down, across), and behind the last tile of a column the padding of its row.
__device__ void turn_scale(const float* from, float* to, std::int64_t down, std::int64_t across, std::int64_t rows,
                           std::int64_t columns) {
  const std::int64_t stride = tile_stride(rows);
  to[across * stride + down] = from[down * tile_stride(columns) + across];
  if (down + 1 != parts_of(rows, kScaleTile)) return;
  for (std::int64_t i = down + 1; i < stride; ++i) to[across * stride + i] = 0;
}

using Turned = std::uint32_t[kTile][kWords];

template <bool kWhole>
__device__ void read_tile(Turned& turned, const ByteTile& from) {
  const int word = threadIdx.x % kWords;
#pragma unroll 4
  for (int quad = threadIdx.x / kWords; quad < kWords; quad += kBlock / kWords) {
    std::uint32_t x[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int row = 4 * quad + k, column = 4 * word;
      x[k] = kWhole ? from.word(row, column) : from.read(row, column);
    }
    turn(x);
#pragma unroll
    for (int k = 0; k < 4; ++k) turned[4 * word + k][quad ^ word] = x[k];
  }
}

template <bool kWhole>
__device__ void write_tile(const Turned& turned, const ByteTile& to) {
  const int word = threadIdx.x % kWords;
#pragma unroll 8
  for (int c = threadIdx.x / kWords; c < kTile; c += kBlock / kWords) {
    const std::uint32_t four = turned[c][word ^ (c / 4)];
    if constexpr (kWhole) {
      to.word(c, 4 * word) = four;
    } else {
      to.write(c, 4 * word, four);
    }
  }
}

template <bool kScales, int kRuns>
__global__ void __launch_bounds__(kBlock)
    columns_kernel(const QuantizedArrays arrays, const __grid_constant__ RunTable<kFields, kRuns> table) {
  __shared__ Turned turned;
  const Tile tile = table.template find<kTileBytes>(blockIdx.x);
  const std::int64_t rows = table.offset[tile.run][kRows], columns = table.offset[tile.run][kColumns];
  const auto across = static_cast<std::uint32_t>(parts_of(columns, kTile));
  const auto number = static_cast<std::uint32_t>(tile.number);
  const std::int64_t row = std::int64_t{number / across} * kTile, column = std::int64_t{number % across} * kTile;
  // All of the tile is there, and words are aligned.
  const bool whole = table.shift[tile.run] == 0 && row + kTile <= rows && column + kTile <= columns;
  auto* const bytes = table.at(static_cast<std::uint8_t*>(arrays.rows), tile.run, kRow);
  auto* const copies = table.at(static_cast<std::uint8_t*>(arrays.columns), tile.run, kColumn);
  const ByteTile from{bytes + row * columns + column, rows - row, columns - column, columns};
  const ByteTile to{copies + column * rows + row, columns - column, rows - row, rows};
  whole ? read_tile<true>(turned, from) : read_tile<false>(turned, from);
  __syncthreads();
  whole ? write_tile<true>(turned, to) : write_tile<false>(turned, to);
  if (kScales && threadIdx.x == 0) {
    turn_scale(
        reinterpret_cast<const float*>(table.at(static_cast<const char*>(arrays.row_scales), tile.run, kRowScales)),
        reinterpret_cast<float*>(table.at(static_cast<char*>(arrays.column_scales), tile.run, kColumnScales)),
        row / kTile, column / kTile, rows, columns);
  }
}

bool at_multiple_of_four(const void* base, std::int64_t offset) {
  return (reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(offset)) % 4 == 0;
}

template <bool kScales>
int launch_columns(const QuantizedArrays& arrays, const std::vector<RunEntry<kFields>>& entries, cudaStream_t stream) {
  return launch_runs(entries, kTileBytes,
                     [&]<int kRuns>(const RunTable<kFields, kRuns>& table, unsigned blocks) -> int {
                       return launch_kernel(columns_kernel<kScales, kRuns>, blocks, stream, arrays, table);
                     });
}

}  // namespace

int launch_make_columns(Scaling scaling, const QuantizedArrays& arrays, std::span<const QuantizedMatrix> matrices,
                        void* stream) {
  if (scaling == Scaling::mxfp8) return cudaErrorInvalidValue;
  std::vector<RunEntry<kFields>> entries;
  entries.reserve(matrices.size());
  for (const QuantizedMatrix& m : matrices) {
    if (m.rows < 1 || m.columns < 1) return cudaErrorInvalidValue;
    const bool words = m.rows % 4 == 0 && m.columns % 4 == 0 && at_multiple_of_four(arrays.rows, m.row) &&
                       at_multiple_of_four(arrays.columns, m.column);
    entries.push_back({.offset = {m.row, m.column, m.row_scales, m.column_scales, m.rows, m.columns},
                       .numel = parts_of(m.rows, kTile) * parts_of(m.columns, kTile) * kTileBytes,
                       .shift = words ? std::uint8_t{0} : kUnaligned});
  }
  const auto on = static_cast<cudaStream_t>(stream);
  return scaling == Scaling::blockwise ? launch_columns<true>(arrays, entries, on)
                                       : launch_columns<false>(arrays, entries, on);
}

}  // namespace ebb::kernels
