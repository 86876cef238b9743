// The parameters of one pipeline rank in Megatron's definition order: what layout, footprint and FLOPs start from.
// Source of order and shapes: Megatron-LM main d98e8a64dd (see docs in parameters.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/job.hpp"
#include "models/units.hpp"

namespace ebb {

/// One parameter as one tensor- (or expert-tensor-) parallel rank holds it.
struct Parameter {
  std::string name;       // Megatron's, e.g. "decoder.layers.3.mlp.linear_fc1.weight"; layers by global number
  std::int64_t rows = 0;  // [rows, columns]; columns == 0: a vector of `rows`
  std::int64_t columns = 0;
  bool expert = false;  // in the expert buffers (allreduce=False): EP > 1 or ETP != TP
  bool decayed = true;  // weight-decay group; vectors and biases are not
  bool embedding_or_output = false;
  bool shared_embedding = false;  // tied embedding copies under pipeline parallelism
  bool low_precision = false;     // a linear weight whose products run in FP8 or FP4
  bool quantized = false;         // ... and that parameter gather stores so
  bool tensor_parallel = false;   // split over the tensor-parallel group (else each rank holds a copy)

  Numel numel() const { return {columns == 0 ? rows : rows * columns}; }
};

/// What one pipeline rank's model chunk contains.
struct ModelChunk {
  std::vector<std::int64_t> decoder_layers;  // global layer numbers, ascending
  std::int64_t mtp_layers = 0;
  bool embedding = false;
  bool output = false;  // output layer and loss, and the final norm of a model without prediction layers
};

/// chunks[c] of pipeline rank `pipeline_rank` (c < virtual_pipeline). Even split or the job's pipeline_layout.
/// InputError when layers do not divide or the layout string does not fit.
std::vector<ModelChunk> model_chunks(const Job& job, std::int64_t pipeline_rank);

/// Parameters of `chunk` in named_parameters order.
std::vector<Parameter> chunk_parameters(const Job& job, const ModelChunk& chunk);

/// Elements of the whole model, unsharded and without vocabulary padding: comparable to published totals, which leave
/// out prediction (MTP) layers, and so does this. Router correction biases are buffers in Megatron, not parameters.
Numel total_parameters(const ModelSpec& model);

}  // namespace ebb
