// What surrounds the layers of a model chunk, in named_parameters order: word and position embeddings, layers, final
// norm, multi-token prediction, output layer. Source: Megatron-LM main d98e8a64dd, core/models/gpt/gpt_model.py,
// core/transformer/transformer_block.py, core/transformer/multi_token_prediction.py and
// core/models/common/language_module/language_module.py (which copies are marked as shared embeddings).
//
// Layers carry their global number in their names, as in Megatron's checkpoints (a live module counts from 0 in
// each chunk). Megatron pads the vocabulary to a multiple of make-vocab-size-divisible-by x tensor-parallel size.
#include "planner/parameters.hpp"

#include <numeric>

#include "planner/layer_parameters.hpp"

namespace ebb {

namespace {

std::int64_t vocabulary_rows(const Job& job) {
  const std::int64_t tensor = job.parallel.tensor;
  return round_up(job.model.vocab, job.model.vocab_divisible_by * tensor) / tensor;
}

/// The stage with prediction layers has a copy of the embedding. Under pipeline parallelism that copy, or the output
/// layer of a tied model, is kept equal to the first stage's embedding: all of these are "shared embeddings".
void append_embedding(ParameterList& list, const Job& job) {
  const ModelSpec& model = job.model;
  list.enter("embedding.");
  list.matrix("word_embeddings.weight", vocabulary_rows(job), model.hidden, Held::split);
  list.last().embedding_or_output = true;
  list.last().shared_embedding = job.parallel.pipeline > 1 && (model.tied_embeddings || model.mtp_layers() > 0);
  if (model.positions == Positions::learned) {
    list.matrix("position_embeddings.weight", model.max_positions, model.hidden, Held::copied);
  }
}

/// A prediction layer repeats the last decoder layer's kind (get_gpt_mtp_block_spec).
void append_prediction_layer(ParameterList& list, const Job& job, std::int64_t index) {
  const std::string prefix = "mtp.layers." + std::to_string(index) + ".";
  const std::int64_t hidden = job.model.hidden;
  list.enter(prefix);
  list.norm("enorm", hidden);
  list.norm("hnorm", hidden);
  list.linear("eh_proj.weight", divide(hidden, job.parallel.tensor), 2 * hidden, Held::split);
  list.enter(prefix + "transformer_layer.");
  append_layer(list, job, job.model.layer_is_moe(job.model.layers - 1));
  list.enter(prefix);
  list.norm("final_layernorm", hidden);
}

/// With prediction layers the final norm stays with the last decoder layer, otherwise it precedes the output.
bool has_final_norm(const ModelSpec& model, const ModelChunk& chunk) {
  if (model.mtp_layers() == 0) return chunk.output;
  return !chunk.decoder_layers.empty() && chunk.decoder_layers.back() == model.layers - 1;
}

/// A tied output layer has a weight of its own only where no embedding stands.
void append_output(ParameterList& list, const Job& job, bool embedding_here) {
  if (job.model.tied_embeddings && embedding_here) return;
  list.enter("output_layer.");
  list.matrix("weight", vocabulary_rows(job), job.model.hidden, Held::split);
  list.last().embedding_or_output = true;
  list.last().shared_embedding = job.model.tied_embeddings && job.parallel.pipeline > 1;
}

}  // namespace

std::vector<Parameter> chunk_parameters(const Job& job, const ModelChunk& chunk) {
  ParameterList list(job);
  const bool embedding_here = chunk.embedding || chunk.mtp_layers > 0;
  if (embedding_here) append_embedding(list, job);
  for (const std::int64_t layer : chunk.decoder_layers) {
    list.enter("decoder.layers." + std::to_string(layer) + ".");
    // --first-last-layers-bf16 counts decoder layers by their global number (core/fp8_utils.py, get_fp8_context).
    const Precision& precision = job.precision;
    list.allow_low_precision(layer >= precision.first_bf16_layers &&
                             layer < job.model.layers - precision.last_bf16_layers);
    append_layer(list, job, job.model.layer_is_moe(layer));
  }
  list.allow_low_precision(true);
  list.enter("decoder.");
  if (has_final_norm(job.model, chunk)) list.norm("final_layernorm", job.model.hidden);
  for (std::int64_t i = 0; i < chunk.mtp_layers; ++i) append_prediction_layer(list, job, i);
  if (chunk.output) append_output(list, job, embedding_here);
  return list.take();
}

Numel total_parameters(const ModelSpec& model) {
  Job whole;
  whole.model = model;
  whole.model.vocab_divisible_by = 1;
  whole.model.mtp.reset();
  // One local expert stands for all: they are equal, and a model may have tens of thousands of them.
  const std::int64_t experts = model.moe ? model.moe->experts : 1;
  whole.parallel.expert = experts;
  whole.parallel.expert_tensor = 1;
  ModelChunk chunk;
  chunk.decoder_layers.resize(static_cast<std::size_t>(model.layers));
  std::iota(chunk.decoder_layers.begin(), chunk.decoder_layers.end(), 0);
  chunk.embedding = chunk.output = true;

  Numel total{0};
  for (const Parameter& parameter : chunk_parameters(whole, chunk)) {
    total += parameter.numel() * (parameter.expert ? experts : 1);
  }
  return total;
}

}  // namespace ebb
