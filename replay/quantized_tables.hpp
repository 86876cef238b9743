// The FP8 actions of a Program as the kernels' tables: which matrices and pieces, and where their arrays are. Both
// executors' quantised actions read it (quantized_reference.hpp, quantized_gpu.hpp).
#pragma once

#include <functional>
#include <vector>

#include "kernels/quantize.hpp"
#include "kernels/runs.hpp"
#include "kernels/types.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

/// The recipe as the kernels name it. A Program has no other (a bug).
kernels::Scaling scaling_of(const Program& program);

/// Which arrays an action uses, beside row-wise bytes and scales.
struct QuantizedNeeds {
  BufferId largest = BufferId::none();
  bool rows = true;
  bool columns = false;  // the column-wise copy and its scales
};
/// Arrays of the quantised parameters. `at`: the first byte of a buffer, asked for no other than those that are needed:
/// a column-wise copy need not be alive.
kernels::QuantizedArrays quantized_arrays(const Program& program, const QuantizedNeeds& needs,
                                          const std::function<void*(BufferId)>& at);

/// Matrices whose largest values and scales the call has, and pieces of owned masters (or of values) as `runs` say.
std::vector<kernels::QuantizedMatrix> quantized_matrices(const Program& program,
                                                         const std::vector<QuantizedRun>& scales);
std::vector<kernels::QuantizedPiece> quantized_pieces(const Program& program, const std::vector<QuantizedRun>& runs);
std::vector<kernels::QuantizedMatrix> quantized_matrices(const Program& program, const MakeColumns& action);

/// The padded elements of a range as forward and backward read them.
struct PaddedValues {
  std::vector<kernels::QuantizedPiece> quantized;  // values: bytes of an fp32 array that begins with the range
  std::vector<kernels::CastRun> plain;             // from the parameter buffer into that array
  std::vector<kernels::Run> gaps;                  // of that array: elements of no parameter in quantised buckets
  kernels::Type plain_type = kernels::Type::bf16;
};
PaddedValues padded_values(const Program& program, ElementRange padded);
/// Whether backward reads column-wise copies: where there are any.
bool has_columns(const Program& program);

}  // namespace ebb::replay
