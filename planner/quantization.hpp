// What it costs to turn updated master weights back into the FP8 or FP4 weights that parameter gather keeps: largest
// values, their all-reduce, temporaries, and HBM bytes of the kernels.
//
// Model of quantize_master_weights (TransformerEngine d0067d0da6, pytorch/tensor/utils.py), for a list of parameters:
//   every owned master is cast to the model's type (2 bytes an element, held until the list is done);
//   largest values of what is owned, one for each scale of each parameter, in one packed tensor, zero where not owned;
//   all-reduce (MAX) of the packed tensor over the sharding group; scales from it; cast to FP8 or FP4.
// Delayed scaling casts with last step's scale and finds the largest value in the same pass, so its all-reduce comes
// last. Where Transformer Engine's optimizer holds the masters, Adam itself writes the quantised weights. MXFP8 through
// the gradient buffer is gathered in bf16 and quantised by every rank afterwards.
// The column-wise copy is made after the gather, of whole parameters, at once or in the next forward
// (weight_bytes.hpp). Time: kernels that read and write HBM once; compute is hidden behind it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/job.hpp"
#include "planner/layout.hpp"

namespace ebb {

/// Whether a step ends with quantize_master_weights.
bool requantizes(const Precision& precision);

/// ... in the ops that a replay can run: largest values, their maximum over ranks, then rows by the scales that follow.
/// Not delayed scaling, whose scales are of steps before, nor FP4.
bool quantizes_explicitly(const Precision& precision);

/// Bytes of one parameter's largest values in the all-reduce: fp32, one for a matrix (delayed, tensorwise), for each
/// row-wise scale as padded (blockwise), for each 16 x 16 tile and the matrix (nvfp4); mxfp8, which Megatron-LM does
/// not gather so: one for 32 elements of each row, then of each column.
Bytes largest_bytes(const Precision& precision, const Parameter& parameter);

/// Tensors beside bf16 copies while `parameters` of a stage are quantised together: the packed largest values and the
/// scales that come of them, a tensor a parameter or packed too.
std::vector<Bytes> quantize_temporaries(const Precision& precision, const StageLayout& stage,
                                        std::span<const std::uint32_t> parameters);

/// HBM bytes an owned element: up to the all-reduce, and after it.
struct QuantizeBytes {
  std::int64_t measure = 0;
  std::int64_t cast = 0;
};
QuantizeBytes quantize_bytes(const Precision& precision);

/// HBM bytes of what forward's weights cost once a step after the gather: column-wise copies of gathered weights (the
/// row-wise bytes are read, as many written); both copies of weights that arrive in bf16, read once more for the
/// largest value where one scale covers the matrix and is this step's (tensorwise).
Bytes forward_quantize_bytes(const Job& job, const StageLayout& stage);
/// The part of it that makes column-wise copies of gathered weights in an op of its own (quantizes_explicitly).
Bytes made_columns_bytes(const Job& job, const StageLayout& stage);

}  // namespace ebb
