// Quantising on the CPU: the definition of its bits. Element by element, as quantize.hpp says it.
#include <algorithm>
#include <cstring>

#include "kernels/access_ref.hpp"
#include "kernels/quantize.hpp"
#include "kernels/quantize_math.hpp"
#include "kernels/quantize_shape.hpp"

namespace ebb::kernels {
namespace {

// An element of a matrix, and its number in the scale arrays.
struct Place {
  std::int64_t row = 0;
  std::int64_t column = 0;
};

std::int64_t scale_index(Scaling scaling, const QuantizedMatrix& m, Place at) {
  switch (scaling) {
    case Scaling::tensorwise:
      return 0;
    case Scaling::blockwise:
      return at.row / kScaleTile * tile_stride(m.columns) + at.column / kScaleTile;
    case Scaling::mxfp8:
      return at.row * mx_row_stride(m.columns) + at.column / kMxBlock;
  }
  return 0;
}
std::int64_t column_scale_index(Scaling scaling, const QuantizedMatrix& m, Place at) {
  switch (scaling) {
    case Scaling::tensorwise:
      return 0;
    case Scaling::blockwise:
      return at.column / kScaleTile * tile_stride(m.rows) + at.row / kScaleTile;
    case Scaling::mxfp8:
      return at.row / kMxBlock * mx_column_stride(m.columns) + at.column;
  }
  return 0;
}
std::int64_t largest_row_index(Scaling scaling, const QuantizedMatrix& m, Place at) {
  return scaling == Scaling::mxfp8 ? at.row * parts_of(m.columns, kMxBlock) + at.column / kMxBlock
                                   : scale_index(scaling, m, at);
}
std::int64_t largest_column_index(const QuantizedMatrix& m, Place at) {
  return mx_largest_columns(m.rows, m.columns) + at.row / kMxBlock * m.columns + at.column;
}

/// Calls f(place, number within the piece) for every element.
template <class F>
void walk(const QuantizedPiece& piece, F f) {
  Place at{piece.first / piece.matrix.columns, piece.first % piece.matrix.columns};
  for (std::int64_t i = 0; i < piece.numel; ++i) {
    f(at, i);
    if (++at.column == piece.matrix.columns) at = {at.row + 1, 0};
  }
}

char* at(void* base, std::int64_t offset) { return static_cast<char*>(base) + offset; }
const char* at(const void* base, std::int64_t offset) { return static_cast<const char*>(base) + offset; }

std::uint16_t narrow_master(const void* masters, const QuantizedPiece& piece, std::int64_t i) {
  return bf16_from_fp32(read_value(Type::fp32, at(masters, piece.values + 4 * i)));
}

void raise(char* largest, std::uint32_t bits) {
  std::uint32_t there = 0;
  std::memcpy(&there, largest, sizeof there);
  there = std::max(there, bits);
  std::memcpy(largest, &there, sizeof there);
}

float read_fp32(const char* from) { return read_value(Type::fp32, from); }
void write_fp32(char* to, float value) { write_value(Type::fp32, to, value); }

// blockwise: the scale of each tile, zeros behind the last of a row.
void tile_scales(const char* largest, char* scales, std::int64_t rows, std::int64_t columns) {
  const std::int64_t stride = tile_stride(columns);
  for (std::int64_t i = 0; i < parts_of(rows, kScaleTile) * stride; ++i) {
    const bool inside = i % stride < parts_of(columns, kScaleTile);
    write_fp32(scales + 4 * i, inside ? 1 / scale_of_largest(read_fp32(largest + 4 * i), true) : 0);
  }
}

// mxfp8: `across` largest values of each of `down` rows into bytes of `stride` x `all`; zeros beyond.
struct MxShape {
  std::int64_t down, across, all, stride;
};
void mx_scales(const char* largest, char* scales, const MxShape& s) {
  for (std::int64_t row = 0; row < s.all; ++row) {
    for (std::int64_t i = 0; i < s.stride; ++i) {
      const bool inside = row < s.down && i < s.across;
      const std::uint8_t byte = inside ? e8m0_of_largest(read_fp32(largest + 4 * (row * s.across + i))) : 0;
      scales[row * s.stride + i] = static_cast<char>(byte);
    }
  }
}

std::uint8_t byte_at(const char* from) { return static_cast<std::uint8_t>(*from); }

}  // namespace

std::int64_t largest_count(Scaling scaling, std::int64_t rows, std::int64_t columns) {
  switch (scaling) {
    case Scaling::tensorwise:
      return 1;
    case Scaling::blockwise:
      return parts_of(rows, kScaleTile) * tile_stride(columns);
    case Scaling::mxfp8:
      return mx_largest_columns(rows, columns) + parts_of(rows, kMxBlock) * columns;
  }
  return 0;
}

std::int64_t row_scale_bytes(Scaling scaling, std::int64_t rows, std::int64_t columns) {
  return scaling == Scaling::mxfp8 ? mx_row_rows(rows) * mx_row_stride(columns)
                                   : 4 * largest_count(scaling, rows, columns);
}

std::int64_t column_scale_bytes(Scaling scaling, std::int64_t rows, std::int64_t columns) {
  switch (scaling) {
    case Scaling::tensorwise:
      return 0;
    case Scaling::blockwise:
      return row_scale_bytes(scaling, columns, rows);
    case Scaling::mxfp8:
      return mx_column_rows(rows) * mx_column_stride(columns);
  }
  return 0;
}

void find_largest_ref(Scaling scaling, const void* masters, const QuantizedArrays& arrays,
                      std::span<const QuantizedPiece> pieces) {
  for (const QuantizedPiece& piece : pieces) {
    const QuantizedMatrix& m = piece.matrix;
    char* const largest = at(arrays.largest, m.largest);
    walk(piece, [&](Place place, std::int64_t i) {
      const std::uint32_t bits = static_cast<std::uint32_t>(narrow_master(masters, piece, i) & 0x7fff) << 16;
      raise(largest + 4 * largest_row_index(scaling, m, place), bits);
      if (scaling == Scaling::mxfp8) raise(largest + 4 * largest_column_index(m, place), bits);
    });
  }
}

void scales_ref(Scaling scaling, const QuantizedArrays& arrays, std::span<const QuantizedMatrix> matrices) {
  for (const QuantizedMatrix& m : matrices) {
    const char* const largest = at(arrays.largest, m.largest);
    char* const scales = at(arrays.row_scales, m.row_scales);
    switch (scaling) {
      case Scaling::tensorwise:
        write_fp32(scales, 1 / scale_of_largest(read_fp32(largest), false));
        break;
      case Scaling::blockwise:
        tile_scales(largest, scales, m.rows, m.columns);
        break;
      case Scaling::mxfp8:
        mx_scales(largest, scales,
                  {m.rows, parts_of(m.columns, kMxBlock), mx_row_rows(m.rows), mx_row_stride(m.columns)});
        mx_scales(largest + 4 * mx_largest_columns(m.rows, m.columns), at(arrays.column_scales, m.column_scales),
                  {parts_of(m.rows, kMxBlock), m.columns, mx_column_rows(m.rows), mx_column_stride(m.columns)});
        break;
    }
  }
}

void quantize_ref(Scaling scaling, const void* masters, const QuantizedArrays& arrays,
                  std::span<const QuantizedPiece> pieces) {
  for (const QuantizedPiece& piece : pieces) {
    const QuantizedMatrix& m = piece.matrix;
    walk(piece, [&](Place place, std::int64_t i) {
      const float x = fp32_from_bf16(narrow_master(masters, piece, i));
      const std::int64_t index = scale_index(scaling, m, place);
      const float scale =
          scaling == Scaling::mxfp8
              ? reciprocal_of_e8m0(byte_at(at(arrays.row_scales, m.row_scales + index)))
              : scale_of_largest(read_fp32(at(static_cast<void*>(arrays.largest), m.largest + 4 * index)),
                                 scaling == Scaling::blockwise);
      *at(arrays.rows, m.row + piece.first + i) = static_cast<char>(fp8_from_fp32(x * scale));
      if (scaling != Scaling::mxfp8) return;
      const std::int64_t other = column_scale_index(scaling, m, place);
      const float column_scale = reciprocal_of_e8m0(byte_at(at(arrays.column_scales, m.column_scales + other)));
      *at(arrays.columns, m.column + piece.first + i) = static_cast<char>(fp8_from_fp32(x * column_scale));
    });
  }
}

void dequantize_ref(Scaling scaling, const QuantizedArrays& arrays, const DequantizeTarget& target,
                    std::span<const QuantizedPiece> pieces) {
  for (const QuantizedPiece& piece : pieces) {
    const QuantizedMatrix& m = piece.matrix;
    const bool transposed = target.from_columns && scaling != Scaling::mxfp8;
    const bool own_scales = target.from_columns && scaling != Scaling::tensorwise;
    const char* const bytes = target.from_columns ? at(arrays.columns, m.column) : at(arrays.rows, m.row);
    const char* const scales =
        own_scales ? at(arrays.column_scales, m.column_scales) : at(arrays.row_scales, m.row_scales);
    walk(piece, [&](Place place, std::int64_t i) {
      const std::int64_t element = transposed ? place.column * m.rows + place.row : piece.first + i;
      const std::int64_t index = own_scales ? column_scale_index(scaling, m, place) : scale_index(scaling, m, place);
      const float scale =
          scaling == Scaling::mxfp8 ? value_of_e8m0(byte_at(scales + index)) : read_fp32(scales + 4 * index);
      write_value(target.type, at(target.values, piece.values + i * bytes_of(target.type)),
                  canonical(fp32_from_fp8(byte_at(bytes + element)) * scale));
    });
  }
}

void make_columns_ref(Scaling scaling, const QuantizedArrays& arrays, std::span<const QuantizedMatrix> matrices) {
  for (const QuantizedMatrix& m : matrices) {
    const char* const rows = at(arrays.rows, m.row);
    char* const columns = at(arrays.columns, m.column);
    for (std::int64_t r = 0; r < m.rows; ++r) {
      for (std::int64_t c = 0; c < m.columns; ++c) columns[c * m.rows + r] = rows[r * m.columns + c];
    }
    if (scaling != Scaling::blockwise) continue;
    const char* const from = at(arrays.row_scales, m.row_scales);
    char* const to = at(arrays.column_scales, m.column_scales);
    for (std::int64_t c = 0; c < parts_of(m.columns, kScaleTile); ++c) {
      for (std::int64_t r = 0; r < tile_stride(m.rows); ++r) {
        const bool inside = r < parts_of(m.rows, kScaleTile);
        write_fp32(to + 4 * (c * tile_stride(m.rows) + r),
                   inside ? read_fp32(from + 4 * (r * tile_stride(m.columns) + c)) : 0);
      }
    }
  }
}

}  // namespace ebb::kernels
