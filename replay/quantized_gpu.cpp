#include "replay/quantized_gpu.hpp"

#include "kernels/elementwise.hpp"
#include "kernels/quantize.hpp"
#include "replay/cuda.hpp"
#include "replay/kernel_type.hpp"
#include "replay/quantized_tables.hpp"

namespace ebb::replay {

void issue_find_largest(const Program& program, const FindLargest& action, const DeviceAt& at, void* stream) {
  if (action.runs.empty()) return;  // a rank that owns nothing of the call need not have masters
  check(kernels::launch_find_largest(scaling_of(program), at(action.masters),
                                     quantized_arrays(program, {.largest = action.largest, .rows = false}, at),
                                     quantized_pieces(program, action.runs), stream),
        "launch_find_largest");
}

void issue_quantize(const Program& program, const Quantize& action, const DeviceAt& at, void* stream) {
  const bool both_ways = scaling_of(program) == kernels::Scaling::mxfp8;
  const kernels::QuantizedArrays arrays =
      quantized_arrays(program, {.largest = action.largest, .columns = both_ways}, at);
  check(kernels::launch_scales(scaling_of(program), arrays, quantized_matrices(program, action.scales), stream),
        "launch_scales");
  if (action.runs.empty()) return;  // all ranks need all scales, but not masters
  check(kernels::launch_quantize(scaling_of(program), at(action.masters), arrays,
                                 quantized_pieces(program, action.runs), stream),
        "launch_quantize");
}

void issue_dequantize(const Program& program, const Dequantize& action, const DeviceAt& at, void* stream) {
  if (action.runs.empty()) return;
  check(kernels::launch_dequantize(scaling_of(program), quantized_arrays(program, {}, at),
                                   {.values = at(action.to), .type = kernel_type(program.plan->precision.params)},
                                   quantized_pieces(program, action.runs), stream),
        "launch_dequantize");
}

void issue_make_columns(const Program& program, const MakeColumns& action, const DeviceAt& at, void* stream) {
  check(kernels::launch_make_columns(scaling_of(program), quantized_arrays(program, {.columns = true}, at),
                                     quantized_matrices(program, action), stream),
        "launch_make_columns");
}

void issue_dequantized_values(const Program& program, ElementRange padded, bool from_columns, const DeviceAt& at,
                              float* out, void* stream) {
  const PaddedValues values = padded_values(program, padded);
  if (!values.quantized.empty()) {
    const bool columns = from_columns && has_columns(program);
    const kernels::QuantizedArrays arrays = quantized_arrays(program, {.rows = !columns, .columns = columns}, at);
    check(kernels::launch_dequantize(scaling_of(program), arrays,
                                     {.values = out, .type = kernels::Type::fp32, .from_columns = columns},
                                     values.quantized, stream),
          "launch_dequantize");
  }
  check(kernels::launch_cast({.source = at(program.params),
                              .destination = out,
                              .source_type = values.plain_type,
                              .destination_type = kernels::Type::fp32},
                             values.plain, stream),
        "launch_cast");
  check(kernels::launch_fill_bytes(kernels::Type::fp32, out, values.gaps, 0, stream), "launch_fill_bytes");
}

}  // namespace ebb::replay
