// The pieces of matrices of one launch as a table, and how a block finds its part of one.
//
// A block takes 32 rows by 128 columns of a matrix, counted from its first element (not the piece's), so that a block
// of scales is never cut by one of threads: a 128 x 128 tile holds four, a 32 x 1 block of mxfp8 lies in one. Thread t
// has columns 4 (t % 32) ... of rows 8 (t / 32) ...; a warp reads 512 bytes of a row at once. Tensorwise scaling knows
// no rows: the matrix is taken as one of 128 columns, whatever its shape, and all rules are the same.
//
// A part that lies wholly in the piece, where all arrays have whole vectors, is read and written without a test; at the
// edges of matrices and pieces each element is tested.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/quantize.hpp"
#include "kernels/quantize_shape.hpp"
#include "kernels/run_table.cuh"
#include "kernels/values.cuh"

namespace ebb::kernels {

inline constexpr int kPartRows = 32;
inline constexpr int kPartColumns = 128;
inline constexpr std::int64_t kPart = kPartRows * kPartColumns;
inline constexpr int kRowsOfThread = 8;
static_assert(kBlock * kWidth * kRowsOfThread == kPart && kPartRows == kMxBlock && kPartColumns == kScaleTile);

// What a table holds of a piece: places of arrays in bytes, then numbers. RunEntry::numel is kPart for each part.
enum : int {
  kValues,
  kLargest,
  kRow,
  kRowScales,
  kColumn,
  kColumnScales,
  kFirst,
  kNumel,
  kRows,
  kColumns,
  kBand,  // the first 32 rows of the matrix that the piece touches, in 32 rows
  kPieceFields
};
inline constexpr int kMaxPieces = 256;  // 24 KB of parameters
template <int kRuns>
using PieceTable = RunTable<kPieceFields, kRuns>;

/// A thread's place: its first row and column, and the piece's elements as numbers of the matrix.
struct Spot {
  int run;
  std::int64_t row, column, columns;
  std::int64_t first, numel;
  bool whole;

  /// The number within the piece of element (row + i, column): negative or beyond numel where it is not the piece's.
  __device__ std::int64_t at(int i) const { return (row + i) * columns + column - first; }
  /// Whether element k behind that one is the piece's and in its row.
  __device__ bool has(std::int64_t element, int k) const {
    return column + k < columns && element + k >= 0 && element + k < numel;
  }
};

template <int kRuns>
__device__ Spot find_spot(const PieceTable<kRuns>& table, std::uint32_t block) {
  const Tile tile = table.template find<kPart>(block);
  const std::int64_t* const field = table.offset[tile.run];
  const std::int64_t columns = field[kColumns];
  const auto across = static_cast<std::uint32_t>(parts_of(columns, kPartColumns));
  const auto number = static_cast<std::uint32_t>(tile.number);
  const std::int64_t row = (field[kBand] + number / across) * kPartRows;
  const std::int64_t column = std::int64_t{number % across} * kPartColumns;
  const std::int64_t begin = row * columns + column - field[kFirst];  // the part's first and last element
  const std::int64_t last = begin + (kPartRows - 1) * columns + kPartColumns - 1;
  return {
      .run = tile.run,
      .row = row + threadIdx.x / 32 * kRowsOfThread,
      .column = column + threadIdx.x % 32 * kWidth,
      .columns = columns,
      .first = field[kFirst],
      .numel = field[kNumel],
      .whole = table.shift[tile.run] == 0 && column + kPartColumns <= columns && begin >= 0 && last < field[kNumel]};
}

/// fp32 masters of four elements of each of the thread's rows; 0 for those that are not the piece's.
__device__ inline void read_masters(float (&x)[kRowsOfThread][4], const void* masters, const Spot& spot) {
  if (spot.whole) {
    uint4 v[kRowsOfThread];
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) v[i] = load<Type::fp32>(masters, spot.at(i));
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) x[i][k] = element<Type::fp32>(v[i], k);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    const std::int64_t element = spot.at(i);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      x[i][k] = spot.has(element, k) ? static_cast<const float*>(masters)[element + k] : 0;
    }
  }
}

/// Entries of the pieces with elements. `fits(piece)`: whether the arrays of its launch have whole vectors at
/// multiples of four elements of a row, given that the first row's do.
template <class Fits>
std::vector<RunEntry<kPieceFields>> piece_entries(Scaling scaling, std::span<const QuantizedPiece> pieces, Fits fits) {
  std::vector<RunEntry<kPieceFields>> entries;
  entries.reserve(pieces.size());
  for (const QuantizedPiece& piece : pieces) {
    if (piece.numel == 0) continue;
    const QuantizedMatrix& m = piece.matrix;
    const std::int64_t columns = scaling == Scaling::tensorwise ? kPartColumns : m.columns;
    const std::int64_t band = piece.first / columns / kPartRows;
    const std::int64_t bands = (piece.first + piece.numel - 1) / columns / kPartRows + 1 - band;
    entries.push_back({.offset = {piece.values, m.largest, m.row, m.row_scales, m.column, m.column_scales, piece.first,
                                  piece.numel, m.rows, columns, band},
                       .numel = bands * parts_of(columns, kPartColumns) * kPart,
                       .shift = columns % kWidth == 0 && fits(piece) ? std::uint8_t{0} : kUnaligned});
  }
  return entries;
}

inline bool pieces_are_valid(std::span<const QuantizedPiece> pieces) {
  for (const QuantizedPiece& piece : pieces) {
    const QuantizedMatrix& m = piece.matrix;
    if (m.rows < 1 || m.columns < 1 || piece.first < 0 || piece.numel < 0) return false;
    if (piece.first + piece.numel > m.rows * m.columns) return false;
  }
  return true;
}

/// Whether elements at multiples of four of the matrix, of `bytes` bytes each, are aligned to vectors in an array that
/// begins with the piece's first.
inline bool vectors_fit(const void* base, std::int64_t offset, std::int64_t bytes, std::int64_t first) {
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(base)) + offset - first * bytes;
  return address % (kWidth * bytes) == 0;
}

}  // namespace ebb::kernels
