// The FP8 actions of a Program on the CPU: largest values, scales and bytes, values, column-wise copies, by the
// references of kernels/quantize.hpp. quantized_gpu.hpp has the same on a GPU.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "replay/program.hpp"

namespace ebb::replay {

/// The first byte of a live device buffer.
using BufferAt = std::function<std::byte*(BufferId)>;

void find_largest_ref(const Program& program, const FindLargest& action, const BufferAt& at);
/// Scales of all parameters of the call, then bytes of owned elements.
void quantize_ref(const Program& program, const Quantize& action, const BufferAt& at);
/// Into the model's type.
void dequantize_ref(const Program& program, const Dequantize& action, const BufferAt& at);
void make_columns_ref(const Program& program, const MakeColumns& action, const BufferAt& at);

/// LargestCollective: the maximum over all members, in each of them. NaN is the largest.
void largest_maximum_ref(std::span<float* const> members, Numel numel);

/// What forward (backward: `from_columns`, where there are column-wise copies) sees of padded elements, as fp32 into
/// out[0 ...]: quantised parameters dequantised, others widened, gaps between quantised parameters 0.
void dequantized_values_ref(const Program& program, ElementRange padded, bool from_columns, const BufferAt& at,
                            float* out);

}  // namespace ebb::replay
