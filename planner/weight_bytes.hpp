// What parameters occupy, tensor by tensor: their place in the parameter buffer, and the quantised copies, scales and
// largest values that FP8 and FP4 recipes keep of a linear weight. Exact for each matrix, because scales are padded
// per matrix and torch rounds each tensor.
// Not here: gradients and optimizer state (optimizer_traffic.hpp), quantising itself (quantization.hpp), and what
// delayed scaling keeps for a whole module (scales and histories of largest values, some hundred bytes each).
#pragma once

#include <cstdint>
#include <vector>

#include "models/job.hpp"
#include "planner/layout.hpp"

namespace ebb {

/// The low-precision tensors of one linear weight of [M, K]. Zero: it has no such tensor.
struct WeightBytes {
  Bytes row;  // as stored; in the parameter buffer where it is gathered, unless that is the gradients'
  Bytes row_scales;
  Bytes column;  // the transposed copy, for the products of backward
  Bytes column_scales;
  std::int64_t scalars = 0;    // fp32 numbers of the whole matrix, each a tensor of its own
  bool row_in_buffer = false;  // `row` lies in the parameter buffer
  bool column_freed = false;   // dropping the column-wise copy gives its storage back
};

/// Source: Transformer Engine's tensor classes, d0067d0da6 (float8_tensor, float8_blockwise_tensor, mxfp8_tensor,
/// nvfp4_tensor). All zero for a parameter that is not multiplied in low precision.
WeightBytes weight_bytes(const Job& job, const Parameter& parameter);

/// Bytes of the parameter buffer of `buffer`, padded: 0 where its parameters are gathered through the gradient buffer,
/// half a byte an element where NVFP4 packs it.
Bytes parameter_buffer_bytes(const Job& job, const BufferLayout& buffer);
/// Bytes that `numel` elements of `buffer` carry in the all-gather.
Bytes gathered_bytes(const Job& job, const BufferLayout& buffer, Numel numel);

/// Whether column-wise copies of gathered weights are made at once after the gather, rather than in the next forward.
/// `automatic`: under CUDA graphs only, which need stable pointers (pull request 6544, preserve_fp8_columnwise).
/// Megatron-LM main and dev make them at once always: `eager`.
bool eager_columnwise(const Job& job);

/// The tensors of a stage's weights outside parameter buffers, one entry a tensor, in definition order.
struct WeightCopies {
  std::vector<Bytes> always;   // alive from building the model on
  Bytes scales{0};             // as torch counts them: the part of `always` that is scales of gathered weights, where
                               // the recipe quantises in ops of its own (quantizes_explicitly)
  Bytes kept_columns{0};       // ... and the part that is their column-wise copies
  std::vector<Bytes> columns;  // column-wise copies that go when masters are quantised and come back after the gather

  Bytes always_bytes() const;   // as torch counts them
  Bytes columns_bytes() const;  // ... alive from forward to the next quantisation, and with eager copies always
};
WeightCopies weight_copies(const Job& job, const StageLayout& stage);

/// Bytes of the copies that live between steps, and so through a save: without `columns` where those are made lazily.
Bytes weight_copies_between_steps(const Job& job, const StageLayout& stage);

}  // namespace ebb
