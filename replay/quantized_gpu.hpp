// The FP8 actions of a Program on a GPU, enqueued on a stream of the current device. The same bits as
// quantized_reference.hpp; errors through check().
#pragma once

#include <functional>

#include "replay/program.hpp"

namespace ebb::replay {

/// The device address of a live buffer.
using DeviceAt = std::function<void*(BufferId)>;

void issue_find_largest(const Program& program, const FindLargest& action, const DeviceAt& at, void* stream);
void issue_quantize(const Program& program, const Quantize& action, const DeviceAt& at, void* stream);
void issue_dequantize(const Program& program, const Dequantize& action, const DeviceAt& at, void* stream);
void issue_make_columns(const Program& program, const MakeColumns& action, const DeviceAt& at, void* stream);

/// `out`: device memory, an fp32 for each of the padded elements.
void issue_dequantized_values(const Program& program, ElementRange padded, bool from_columns, const DeviceAt& at,
                              float* out, void* stream);

}  // namespace ebb::replay
