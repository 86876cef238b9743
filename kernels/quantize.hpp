// FP8 weights: largest values of master weights, the scales that follow from them, E4M3 bytes, the way back, and
// column-wise copies. GPU launchers and their references, which give the same bits.
//
// A matrix of [R, C] is row-major. What is quantised is bf16(master), as Transformer Engine's quantize_master_weights
// casts masters to the model's type first. Three recipes; pad(n) is up to a multiple of n:
//
//               largest values (fp32)                      row-wise scales                    column-wise copy
//   tensorwise  1                                          1 fp32                             transposed, the same
//   scale blockwise   [ceil(R/128), pad4(ceil(C/128))]           fp32, the same shape               transposed, fp32
//               of tiles of 128 x 128                                                         [ceil(C/128),
//               pad4(ceil(R/128))]
//   mxfp8       [R, ceil(C/32)] of 32 in a row, then       E8M0 bytes                         quantised anew, not
//   transposed,
//               [ceil(R/32), C] of 32 in a column          [pad128(R), pad4(ceil(C/32))]      E8M0 [pad4(ceil(R/32)),
//               pad128(C)]
//
// Stored scales are what bytes are multiplied by on the way back: 1 / scale, or the power of two that E8M0 names.
// Tensorwise scales are any number, blockwise ones powers of two (Transformer Engine's defaults). Padding is 0.
//
// Why largest values are of their own: ranks own pieces of matrices. Each finds the largest values of its pieces, the
// maximum over ranks follows, then all compute the same scales: how a matrix is cut changes no bit. A maximum of the
// magnitudes' bits as integers, so no order matters and NaN is the largest of all; |bf16(x)| has 0 in its sign.
//
// Bytes that move for an element: find_largest 4, quantize 5 (mxfp8 6), dequantize 1 and the values, make_columns 2.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/types.hpp"

namespace ebb::kernels {

enum class Scaling : std::uint8_t { tensorwise, blockwise, mxfp8 };

/// Of one matrix: its shape, and where its arrays begin in bytes after those of QuantizedArrays. Any place will do for
/// bytes; kernels are fastest where `row` and `column` are multiples of 4.
struct QuantizedMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t largest = 0;
  std::int64_t row = 0;
  std::int64_t row_scales = 0;
  std::int64_t column = 0;
  std::int64_t column_scales = 0;
};

/// Elements [first, first + numel) of a matrix, whose values begin `values` bytes after the base of the values. numel 0
/// is allowed. Pieces of one launch must not overlap.
struct QuantizedPiece {
  QuantizedMatrix matrix;
  std::int64_t first = 0;
  std::int64_t numel = 0;
  std::int64_t values = 0;
};

/// What a function below does not use may be null.
struct QuantizedArrays {
  float* largest = nullptr;
  void* rows = nullptr;
  void* row_scales = nullptr;
  void* columns = nullptr;
  void* column_scales = nullptr;
};

/// fp32 numbers that the largest values of a matrix take, and bytes of its scales.
std::int64_t largest_count(Scaling scaling, std::int64_t rows, std::int64_t columns);
std::int64_t row_scale_bytes(Scaling scaling, std::int64_t rows, std::int64_t columns);
std::int64_t column_scale_bytes(Scaling scaling, std::int64_t rows, std::int64_t columns);

/// Largest values of |bf16(master)|, masters in fp32, over each piece: the maximum with what is there already.
[[nodiscard]] int launch_find_largest(Scaling scaling, const void* masters, const QuantizedArrays& arrays,
                                      std::span<const QuantizedPiece> pieces, void* stream);
void find_largest_ref(Scaling scaling, const void* masters, const QuantizedArrays& arrays,
                      std::span<const QuantizedPiece> pieces);

/// All scales of the matrices, padding included, from their largest values. mxfp8: row-wise and column-wise ones.
[[nodiscard]] int launch_scales(Scaling scaling, const QuantizedArrays& arrays,
                                std::span<const QuantizedMatrix> matrices, void* stream);
void scales_ref(Scaling scaling, const QuantizedArrays& arrays, std::span<const QuantizedMatrix> matrices);

/// E4M3 of bf16(master) * scale, saturated, into row-wise bytes; mxfp8 also into the column-wise copy. Scales come from
/// the largest values; those of mxfp8 are read, so launch_scales comes before.
[[nodiscard]] int launch_quantize(Scaling scaling, const void* masters, const QuantizedArrays& arrays,
                                  std::span<const QuantizedPiece> pieces, void* stream);
void quantize_ref(Scaling scaling, const void* masters, const QuantizedArrays& arrays,
                  std::span<const QuantizedPiece> pieces);

/// Bytes times stored scales, rounded to fp32 and then to `type`: bf16 or fp32.
struct DequantizeTarget {
  void* values = nullptr;
  Type type = Type::bf16;
  bool from_columns = false;  // from the column-wise copy
};
[[nodiscard]] int launch_dequantize(Scaling scaling, const QuantizedArrays& arrays, const DequantizeTarget& target,
                                    std::span<const QuantizedPiece> pieces, void* stream);
void dequantize_ref(Scaling scaling, const QuantizedArrays& arrays, const DequantizeTarget& target,
                    std::span<const QuantizedPiece> pieces);

/// The transposed copies of whole matrices; blockwise with their scales. Not mxfp8.
[[nodiscard]] int launch_make_columns(Scaling scaling, const QuantizedArrays& arrays,
                                      std::span<const QuantizedMatrix> matrices, void* stream);
void make_columns_ref(Scaling scaling, const QuantizedArrays& arrays, std::span<const QuantizedMatrix> matrices);

}  // namespace ebb::kernels
