// Saved activations of a pipeline rank: its layers times the micro-batches in flight, and the temporaries of the turn.
#include "planner/activations.hpp"

#include <algorithm>

namespace ebb {

namespace {

constexpr std::int64_t kBf16 = 2;
constexpr std::int64_t kFp32 = 4;

/// Layers of one virtual stage that keep everything, and those of which only the input stays.
struct Kept {
  std::int64_t whole = 0;
  std::int64_t inputs = 0;
};

Kept kept_layers(const Recompute& recompute, std::int64_t layers) {
  if (recompute.granularity != RecomputeGranularity::full) return {layers, 0};
  const std::int64_t n = std::max<std::int64_t>(recompute.layers, 1);
  if (recompute.method == "block") return {std::max<std::int64_t>(layers - n, 0), std::min(n, layers)};
  return {0, ceil_div(layers, n)};
}

/// What one micro-batch leaves behind in one virtual stage.
Bytes stage_bytes(const Job& job, const ModelChunk& chunk, Bytes dense_layer, Bytes moe_layer) {
  const auto layers = static_cast<std::int64_t>(chunk.decoder_layers.size());
  const Kept kept = kept_layers(job.recompute, layers);
  const Bytes hidden = hidden_state_bytes(job);
  Bytes sum = kept.inputs * hidden;
  for (std::int64_t i = layers - kept.whole; i < layers; ++i)
    sum += job.model.layer_is_moe(chunk.decoder_layers[i]) ? moe_layer : dense_layer;
  if (chunk.output) sum += 2 * hidden;  // input and output of the final norm
  if (chunk.mtp_layers == 0) return sum;
  // Each prediction layer: embedding and hidden state before and after their norms, their concatenation, final norm.
  Bytes layer = job.model.layer_is_moe(job.model.layers - 1) ? moe_layer : dense_layer;
  if (job.recompute.granularity == RecomputeGranularity::full) layer = hidden;
  return sum + chunk.mtp_layers * (6 * hidden + layer);
}

}  // namespace

std::int64_t padded_vocabulary(const Job& job) {
  return round_up(job.model.vocab, job.model.vocab_divisible_by * job.parallel.tensor);
}

std::vector<std::int64_t> micro_batches_in_flight(const Job& job, std::int64_t pipeline_rank) {
  const std::int64_t stages = job.parallel.pipeline;
  const std::int64_t virtual_stages = job.parallel.virtual_pipeline;
  const std::int64_t micro_batches = std::max<std::int64_t>(job.micro_batches(), 1);
  std::vector<std::int64_t> alive(virtual_stages, 0);
  if (virtual_stages == 1) {
    alive[0] = std::min(stages - pipeline_rank, micro_batches);
    return alive;
  }
  const std::int64_t warmup = 2 * (stages - pipeline_rank - 1) + (virtual_stages - 1) * stages;
  std::int64_t left = std::min(warmup + 1, micro_batches * virtual_stages);
  for (std::int64_t done = 0; left > 0; done += stages) {
    const std::int64_t group = std::min(stages, micro_batches - done);
    for (std::int64_t stage = 0; stage < virtual_stages && left > 0; ++stage) {
      const std::int64_t count = std::min(group, left);
      alive[stage] += count;
      left -= count;
    }
  }
  return alive;
}

Bytes saved_activations(const Job& job, const StageLayout& stage) {
  const Bytes dense = saved_activations_per_layer(job, false).total();
  const Bytes moe = job.model.moe ? saved_activations_per_layer(job, true).total() : Bytes{0};
  const std::vector<std::int64_t> alive = micro_batches_in_flight(job, stage.pipeline_rank);
  EBB_ASSERT(stage.chunks.size() <= alive.size());
  Bytes sum{0};
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) sum += alive[c] * stage_bytes(job, stage.chunks[c], dense, moe);
  // Local attention needs the causal mask as a tensor of bytes, and the rotary angles in fp32.
  const std::int64_t s = job.batch.sequence;
  if (job.compute.attention == Attention::local) {
    sum += Bytes{job.batch.micro * s * s};
    if (job.model.positions == Positions::rope) sum += Bytes{kFp32 * s * job.model.head_dim};
  }
  return sum;
}

Bytes turn_temporaries(const Job& job, const StageLayout& stage) {
  bool output = false;
  std::int64_t mtp_layers = 0;
  for (const ModelChunk& chunk : stage.chunks) {
    output = output || chunk.output;
    mtp_layers += chunk.mtp_layers;
  }
  // Loss: bf16 logits and their fp32 softmax; each prediction layer has left its own softmax behind.
  const std::int64_t logits = rank_tokens(job) * (padded_vocabulary(job) / job.parallel.tensor);
  const Bytes loss = output ? Bytes{logits * (kBf16 + kFp32 + kFp32 * mtp_layers)} : Bytes{0};
  const bool moe = job.model.moe.has_value();
  Bytes layer = layer_gradient_bytes(job, false);
  if (moe) layer = std::max(layer, layer_gradient_bytes(job, true));
  if (job.recompute.granularity == RecomputeGranularity::full) {
    const std::int64_t block = job.recompute.method == "block" ? 1 : std::max<std::int64_t>(job.recompute.layers, 1);
    layer += block * std::max(saved_activations_per_layer(job, false).total(),
                              moe ? saved_activations_per_layer(job, true).total() : Bytes{0});
  }
  return std::max(loss, layer);
}

}  // namespace ebb
