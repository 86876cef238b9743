// Where the largest values and scales of a matrix's elements lie (quantize.hpp has the shapes). Shared by kernels and
// references.
#pragma once

#include <cstdint>

#include "kernels/host_device.hpp"

namespace ebb::kernels {

inline constexpr std::int64_t kScaleTile = 128;  // blockwise: rows and columns of a tile
inline constexpr std::int64_t kMxBlock = 32;     // mxfp8: elements that share a scale

EBB_HOST_DEVICE constexpr std::int64_t parts_of(std::int64_t n, std::int64_t part) { return (n + part - 1) / part; }
EBB_HOST_DEVICE constexpr std::int64_t padded_to(std::int64_t n, std::int64_t multiple) {
  return parts_of(n, multiple) * multiple;
}

// Elements in a row of a scale array, all multiples of 4.
EBB_HOST_DEVICE constexpr std::int64_t tile_stride(std::int64_t columns) {
  return padded_to(parts_of(columns, kScaleTile), 4);
}
EBB_HOST_DEVICE constexpr std::int64_t mx_row_stride(std::int64_t columns) {
  return padded_to(parts_of(columns, kMxBlock), 4);
}
EBB_HOST_DEVICE constexpr std::int64_t mx_column_stride(std::int64_t columns) { return padded_to(columns, 128); }

// ... and rows of the two arrays of mxfp8.
EBB_HOST_DEVICE constexpr std::int64_t mx_row_rows(std::int64_t rows) { return padded_to(rows, 128); }
EBB_HOST_DEVICE constexpr std::int64_t mx_column_rows(std::int64_t rows) {
  return padded_to(parts_of(rows, kMxBlock), 4);
}

/// Where the largest values of columns begin, in elements after those of rows.
EBB_HOST_DEVICE constexpr std::int64_t mx_largest_columns(std::int64_t rows, std::int64_t columns) {
  return rows * parts_of(columns, kMxBlock);
}

}  // namespace ebb::kernels
