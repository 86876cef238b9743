// What forward saves, per layer and micro-batch. T tokens a rank (micro-batch x sequence / CP), t = T / TP with
// sequence parallelism else T, h hidden, A and G heads and query groups a rank, d head size, f feed-forward size a
// rank, g = 2 gated else 1, R = t x top-k x ETP routed tokens at balanced load. bf16; `w` is 2, or 1 where an fp8
// GEMM saves its quantised input.
//
//   norm inputs (they are the residual stream)              2 x 2th
//   norm outputs (inputs of QKV and fc1)                    2 x wth      MoE: the second stays bf16
//   norm statistics                                         2 x 4t       layernorm keeps two of them
//   Q, K, V                                                 2Td(A + 2G)
//   Q and K before their own norm                           2Td(A + G)   qk_norm
//   attention output, also input of the projection          2TdA         fp8: and TdA quantised
//   flash: log-sum-exp                                      4TA
//   local: softmax                                          2A b s^2
//   local: rotated Q and K; the split of QKV keeps all of
//          it alive through V                               2Td 2A       query groups: K and V repeated instead
//   local: cosine and sine, for Q and for K                 4 x 2sd
//   fc1 output                                              2Tfg
//   activation output                                       wTf
//   local and gated: silu and the linear half on their own  2 x 2Tf
//   MoE: router logits, probabilities, map                  9tE
//        permuted input, fc1 and activation of the experts  R(wh + 2fg + wf)
//
// The structure reproduces the recorded peaks of Megatron-LM's own functional tests (Transformer Engine, H100) and a
// measured run with the local implementation on an H200 to the last MiB: tests/planner/activations_test.cpp.
// Dropout is taken as 0, as in every published large run; Megatron's default of 0.1 adds 1 byte an element twice a
// layer.
#include "planner/activations.hpp"

#include <algorithm>

namespace ebb {

namespace {

constexpr std::int64_t kBf16 = 2;
constexpr std::int64_t kFp32 = 4;

std::int64_t tokens(const Job& job) { return job.batch.micro * job.batch.sequence / job.parallel.context; }

/// Tokens of the tensors that sequence parallelism splits.
std::int64_t split_tokens(const Job& job) {
  return job.parallel.sequence ? tokens(job) / job.parallel.tensor : tokens(job);
}

bool is_local(const Job& job) { return job.compute.attention == Attention::local; }

/// Bytes an element of a saved GEMM input.
std::int64_t gemm_input_bytes(const Job& job) { return job.precision.fp8 == Fp8Recipe::none ? kBf16 : 1; }

Bytes norm_bytes(const Job& job, bool moe) {
  const ModelSpec& model = job.model;
  const std::int64_t rows = split_tokens(job);
  const std::int64_t statistics = kFp32 * rows * (model.norm == Norm::layernorm ? 2 : 1);
  const std::int64_t input = kBf16 * rows * model.hidden;
  std::int64_t outputs = gemm_input_bytes(job) * rows * model.hidden;  // of the first norm
  outputs += (moe ? kBf16 : gemm_input_bytes(job)) * rows * model.hidden;
  if (recomputes(job.recompute, "layernorm")) outputs = 0;
  return {2 * (input + statistics) + outputs};
}

/// Queries, keys and values as the attention kernel saves them, and what local attention keeps beside them.
std::int64_t standard_qkv_bytes(const Job& job) {
  const ModelSpec& model = job.model;
  const std::int64_t query = tokens(job) * model.head_dim * model.heads / job.parallel.tensor;
  const std::int64_t key = std::max(tokens(job) * model.head_dim * model.kv_heads / job.parallel.tensor,
                                    tokens(job) * model.head_dim);  // groups < TP: each rank holds one
  const bool grouped = model.heads != model.kv_heads;
  const bool rope = model.positions == Positions::rope;
  std::int64_t elements = query + 2 * key;
  if (model.qk_norm) elements += query + key;
  if (is_local(job) && grouped) elements = std::max(elements, 3 * query);
  if (is_local(job) && !grouped && rope) elements += query + key;
  const std::int64_t tables = is_local(job) && rope ? 4 * kBf16 * job.batch.sequence * model.head_dim : 0;
  return kBf16 * elements + tables;
}

/// Latent attention: the compressed vectors with their norms, then Q, K, V at full width.
std::int64_t latent_qkv_bytes(const Job& job) {
  const MlaSpec& mla = *job.model.mla;
  const std::int64_t width = gemm_input_bytes(job);
  const std::int64_t compressed = mla.q_lora_rank + mla.kv_lora_rank;
  std::int64_t bytes = split_tokens(job) * ((kBf16 + width) * compressed + kBf16 * mla.qk_rope_head_dim);
  const std::int64_t full = 2 * (mla.qk_head_dim + mla.qk_rope_head_dim) + mla.v_head_dim;
  if (!recomputes(job.recompute, "mla_up_proj"))
    bytes += kBf16 * tokens(job) * full * job.model.heads / job.parallel.tensor;
  return bytes;
}

Bytes attention_bytes(const Job& job) {
  const ModelSpec& model = job.model;
  const std::int64_t heads = model.heads / job.parallel.tensor;
  const std::int64_t value_dim = model.mla ? model.mla->v_head_dim : model.head_dim;
  const std::int64_t context = tokens(job) * heads * value_dim;
  std::int64_t bytes = model.mla ? latent_qkv_bytes(job) : standard_qkv_bytes(job);
  bytes += kBf16 * context;
  if (job.precision.fp8 != Fp8Recipe::none) bytes += context;
  if (!is_local(job) && !recomputes(job.recompute, "core_attn")) bytes += kFp32 * tokens(job) * heads;
  return {bytes};
}

Bytes score_bytes(const Job& job) {
  if (!is_local(job) || recomputes(job.recompute, "core_attn")) return {0};
  const std::int64_t s = job.batch.sequence;
  return {kBf16 * job.batch.micro * (job.model.heads / job.parallel.tensor) * s * s};
}

/// fc1 output and activation output for `rows` tokens of an MLP with `ffn` columns a rank.
std::int64_t feed_forward_bytes(const Job& job, std::int64_t rows, std::int64_t ffn, bool keep_activation) {
  const bool gated = job.model.gated;
  std::int64_t bytes = kBf16 * rows * ffn * (gated ? 2 : 1);
  if (keep_activation) bytes += gemm_input_bytes(job) * rows * ffn;
  if (is_local(job) && gated) bytes += 2 * kBf16 * rows * ffn;
  return bytes;
}

Bytes mlp_bytes(const Job& job, bool moe) {
  const std::int64_t ffn = moe ? job.model.moe->shared_ffn : job.model.ffn;
  if (recomputes(job.recompute, moe ? "shared_experts" : "mlp") || (moe && recomputes(job.recompute, "moe")))
    return {0};
  return {feed_forward_bytes(job, tokens(job), ffn / job.parallel.tensor, true)};
}

Bytes expert_bytes(const Job& job, bool moe) {
  if (!moe || recomputes(job.recompute, "moe")) return {0};
  const MoeSpec& spec = *job.model.moe;
  const std::int64_t rows = split_tokens(job);
  const std::int64_t routed = rows * spec.top_k * job.parallel.expert_tensor;
  const std::int64_t width = spec.latent > 0 ? spec.latent : job.model.hidden;
  std::int64_t bytes = 9 * rows * spec.experts;
  bytes += gemm_input_bytes(job) * routed * width;
  bytes +=
      feed_forward_bytes(job, routed, spec.ffn / job.parallel.expert_tensor, !recomputes(job.recompute, "moe_act"));
  bytes += gemm_input_bytes(job) * rows * spec.latent;  // input of the projection back to hidden
  return {bytes};
}

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
  // Each prediction layer: embedding and hidden state before and after their norms, their concatenation, final norm.
  const bool last_is_moe = job.model.layer_is_moe(job.model.layers - 1);
  if (chunk.mtp_layers > 0) sum += chunk.mtp_layers * (6 * hidden + (last_is_moe ? moe_layer : dense_layer));
  return sum;
}

/// Gradients alive while the MLP or the attention of one layer runs backward.
Bytes layer_gradient_bytes(const Job& job, bool moe) {
  const std::int64_t gate = job.model.gated ? 2 : 1;
  const std::int64_t rows = moe ? split_tokens(job) * job.model.moe->top_k : tokens(job);
  const std::int64_t ffn = moe ? job.model.moe->ffn : job.model.ffn / job.parallel.tensor;
  const Bytes mlp = Bytes{kBf16 * rows * ffn * gate} + 2 * hidden_state_bytes(job);
  return std::max(mlp, 2 * score_bytes(job));
}

}  // namespace

bool recomputes(const Recompute& recompute, std::string_view module) {
  if (recompute.granularity != RecomputeGranularity::selective) return false;
  const auto& modules = recompute.modules;
  if (modules.empty()) return module == "core_attn";
  return std::find(modules.begin(), modules.end(), module) != modules.end();
}

Bytes hidden_state_bytes(const Job& job) { return {kBf16 * split_tokens(job) * job.model.hidden}; }

std::int64_t padded_vocabulary(const Job& job) {
  return round_up(job.model.vocab, job.model.vocab_divisible_by * job.parallel.tensor);
}

SavedActivations saved_activations_per_layer(const Job& job, bool moe) {
  return {norm_bytes(job, moe), attention_bytes(job), score_bytes(job), mlp_bytes(job, moe), expert_bytes(job, moe)};
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
  Bytes sum{0};
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) sum += alive[c] * stage_bytes(job, stage.chunks[c], dense, moe);
  // Local attention needs the causal mask as a tensor of bytes, and the rotary angles in fp32.
  const std::int64_t s = job.batch.sequence;
  if (is_local(job)) {
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
  const std::int64_t logits = tokens(job) * (padded_vocabulary(job) / job.parallel.tensor);
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
