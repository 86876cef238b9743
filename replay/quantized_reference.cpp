#include "replay/quantized_reference.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/elementwise.hpp"
#include "kernels/quantize.hpp"
#include "replay/kernel_type.hpp"
#include "replay/quantized_tables.hpp"

namespace ebb::replay {

void find_largest_ref(const Program& program, const FindLargest& action, const BufferAt& at) {
  if (action.runs.empty()) return;  // a rank that owns nothing of the call need not have masters
  kernels::find_largest_ref(scaling_of(program), at(action.masters),
                            quantized_arrays(program, {.largest = action.largest, .rows = false}, at),
                            quantized_pieces(program, action.runs));
}

void quantize_ref(const Program& program, const Quantize& action, const BufferAt& at) {
  const bool both_ways = scaling_of(program) == kernels::Scaling::mxfp8;
  const kernels::QuantizedArrays arrays =
      quantized_arrays(program, {.largest = action.largest, .columns = both_ways}, at);
  kernels::scales_ref(scaling_of(program), arrays, quantized_matrices(program, action.scales));
  if (action.runs.empty()) return;  // all ranks need all scales, but not masters
  kernels::quantize_ref(scaling_of(program), at(action.masters), arrays, quantized_pieces(program, action.runs));
}

void dequantize_ref(const Program& program, const Dequantize& action, const BufferAt& at) {
  if (action.runs.empty()) return;
  kernels::dequantize_ref(scaling_of(program), quantized_arrays(program, {}, at),
                          {.values = at(action.to), .type = kernel_type(program.plan->precision.params)},
                          quantized_pieces(program, action.runs));
}

void make_columns_ref(const Program& program, const MakeColumns& action, const BufferAt& at) {
  kernels::make_columns_ref(scaling_of(program), quantized_arrays(program, {.columns = true}, at),
                            quantized_matrices(program, action));
}

void largest_maximum_ref(std::span<float* const> members, Numel numel) {
  for (std::int64_t i = 0; i < numel.value; ++i) {
    std::uint32_t largest = 0;
    for (const float* member : members) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, member + i, sizeof bits);
      largest = std::max(largest, bits);  // of numbers that are not negative, as the numbers; NaN above all
    }
    for (float* member : members) std::memcpy(member + i, &largest, sizeof largest);
  }
}

void dequantized_values_ref(const Program& program, ElementRange padded, bool from_columns, const BufferAt& at,
                            float* out) {
  const PaddedValues values = padded_values(program, padded);
  if (!values.quantized.empty()) {
    const bool columns = from_columns && has_columns(program);
    const kernels::QuantizedArrays arrays = quantized_arrays(program, {.rows = !columns, .columns = columns}, at);
    kernels::dequantize_ref(scaling_of(program), arrays,
                            {.values = out, .type = kernels::Type::fp32, .from_columns = columns}, values.quantized);
  }
  kernels::cast_ref({.source = at(program.params),
                     .destination = out,
                     .source_type = values.plain_type,
                     .destination_type = kernels::Type::fp32},
                    values.plain);
  for (const kernels::Run& gap : values.gaps) {
    std::fill_n(out + gap.offset / 4, gap.numel, 0.0F);
  }
}

}  // namespace ebb::replay
