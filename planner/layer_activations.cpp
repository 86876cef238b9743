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
// The structure meets the recorded peaks of Megatron-LM's own dense functional tests (Transformer Engine, H100) within
// 2 percent and a measured run of the local implementation (H200) within 1 MiB: tests/planner/activations_test.cpp.
// Dropout is taken as 0, as in every published large run; Megatron's default of 0.1 adds 1 byte an element twice a
// layer.
#include "planner/layer_activations.hpp"

#include <algorithm>

namespace ebb {

namespace {

constexpr std::int64_t kBf16 = 2;
constexpr std::int64_t kFp32 = 4;

/// Tokens of the tensors that sequence parallelism splits.
std::int64_t split_tokens(const Job& job) {
  return job.parallel.sequence ? rank_tokens(job) / job.parallel.tensor : rank_tokens(job);
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
  const std::int64_t query = rank_tokens(job) * model.head_dim * model.heads / job.parallel.tensor;
  const std::int64_t key = std::max(rank_tokens(job) * model.head_dim * model.kv_heads / job.parallel.tensor,
                                    rank_tokens(job) * model.head_dim);  // groups < TP: each rank holds one
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
    bytes += kBf16 * rank_tokens(job) * full * job.model.heads / job.parallel.tensor;
  return bytes;
}

Bytes attention_bytes(const Job& job) {
  const ModelSpec& model = job.model;
  const std::int64_t heads = model.heads / job.parallel.tensor;
  const std::int64_t value_dim = model.mla ? model.mla->v_head_dim : model.head_dim;
  const std::int64_t context = rank_tokens(job) * heads * value_dim;
  std::int64_t bytes = model.mla ? latent_qkv_bytes(job) : standard_qkv_bytes(job);
  bytes += kBf16 * context;
  if (job.precision.fp8 != Fp8Recipe::none) bytes += context;
  if (!is_local(job) && !recomputes(job.recompute, "core_attn")) bytes += kFp32 * rank_tokens(job) * heads;
  return {bytes};
}

/// Attention scores of local attention, saved or not.
Bytes score_bytes(const Job& job) {
  if (!is_local(job)) return {0};
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
  return {feed_forward_bytes(job, rank_tokens(job), ffn / job.parallel.tensor, true)};
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

}  // namespace

bool recomputes(const Recompute& recompute, std::string_view module) {
  if (recompute.granularity != RecomputeGranularity::selective) return false;
  const auto& modules = recompute.modules;
  if (modules.empty()) return module == "core_attn";
  return std::find(modules.begin(), modules.end(), module) != modules.end();
}

std::int64_t rank_tokens(const Job& job) { return job.batch.micro * job.batch.sequence / job.parallel.context; }

Bytes hidden_state_bytes(const Job& job) { return {kBf16 * split_tokens(job) * job.model.hidden}; }

SavedActivations saved_activations_per_layer(const Job& job, bool moe) {
  const Bytes scores = recomputes(job.recompute, "core_attn") ? Bytes{0} : score_bytes(job);
  return {norm_bytes(job, moe), attention_bytes(job), scores, mlp_bytes(job, moe), expert_bytes(job, moe)};
}

Bytes layer_gradient_bytes(const Job& job, bool moe) {
  const std::int64_t gate = job.model.gated ? 2 : 1;
  const std::int64_t rows = moe ? split_tokens(job) * job.model.moe->top_k : rank_tokens(job);
  const std::int64_t ffn = moe ? job.model.moe->ffn : job.model.ffn / job.parallel.tensor;
  const Bytes mlp = Bytes{kBf16 * rows * ffn * gate} + 2 * hidden_state_bytes(job);
  // Gradients of the softmax and of the scores, and the softmax itself where it was recomputed.
  return std::max(mlp, (recomputes(job.recompute, "core_attn") ? 3 : 2) * score_bytes(job));
}

}  // namespace ebb
