// Forward FLOPs for s tokens, with h hidden, A heads, G query groups, d head size, f = 3 for a gated MLP else 2:
//   attention matrices  2s h (dA + 2dG + dA)
//     latent attention  2s (q_lora (h + A(qk + rope) + 1) + kv_lora (h + A(qk + v) + 1) + h rope + A v h)
//   attention core      2 s^2 A d                   (half of 4 s^2 A d); latent: s^2 A (qk + rope + v)
//   dense MLP           2s h ffn f
//   MoE                 2s h (moe_ffn top-k f + shared f); latent experts: 2s (l moe_ffn top-k f + 2 h l)
//   output              2s h V
//   prediction layer    2s (3h + 2h^2)
// and three times the sum for forward and backward.
#include "planner/flops.hpp"

namespace ebb {

namespace {

/// Multiply-adds of one token, as a double: products of sizes leave int64 for large models and long sequences.
Flops multiply_adds(double per_token, std::int64_t sequence) {
  return {2.0 * per_token * static_cast<double>(sequence)};
}

double attention_matrices(const ModelSpec& model) {
  const auto hidden = static_cast<double>(model.hidden);
  const auto heads = static_cast<double>(model.heads);
  if (!model.mla) return hidden * static_cast<double>(model.head_dim * (2 * model.heads + 2 * model.kv_heads));
  const MlaSpec& mla = *model.mla;
  const auto query_dim = static_cast<double>(mla.qk_head_dim + mla.qk_rope_head_dim);
  const auto q_rank = static_cast<double>(mla.q_lora_rank);
  const auto kv_rank = static_cast<double>(mla.kv_lora_rank);
  const double query = mla.q_lora_rank > 0 ? q_rank * (hidden + heads * query_dim + 1) : hidden * heads * query_dim;
  const double key_value = kv_rank * (hidden + heads * static_cast<double>(mla.qk_head_dim + mla.v_head_dim) + 1) +
                           hidden * static_cast<double>(mla.qk_rope_head_dim);
  return query + key_value + heads * static_cast<double>(mla.v_head_dim) * hidden;
}

double feed_forward(const ModelSpec& model, bool moe) {
  const auto hidden = static_cast<double>(model.hidden);
  const double matrices = model.gated ? 3 : 2;
  if (!moe) return hidden * static_cast<double>(model.ffn) * matrices;
  const MoeSpec& spec = *model.moe;
  const auto latent = static_cast<double>(spec.latent);
  const double routed = (spec.latent > 0 ? latent : hidden) * static_cast<double>(spec.ffn * spec.top_k) * matrices;
  return routed + 2 * hidden * latent + hidden * static_cast<double>(spec.shared_ffn) * matrices;
}

}  // namespace

Flops attention_matrix_flops(const ModelSpec& model, std::int64_t sequence) {
  return multiply_adds(attention_matrices(model), sequence);
}

Flops feed_forward_flops(const ModelSpec& model, bool moe, std::int64_t sequence) {
  return multiply_adds(feed_forward(model, moe), sequence);
}

Flops attention_core_flops(const ModelSpec& model, std::int64_t sequence) {
  const auto s = static_cast<double>(sequence);
  const auto dims =
      model.mla ? model.mla->qk_head_dim + model.mla->qk_rope_head_dim + model.mla->v_head_dim : 2 * model.head_dim;
  return {s * s * static_cast<double>(model.heads * dims)};
}

Flops output_flops(const ModelSpec& model, std::int64_t sequence) {
  const std::int64_t vocabulary = round_up(model.vocab, model.vocab_divisible_by);
  return multiply_adds(static_cast<double>(model.hidden) * static_cast<double>(vocabulary), sequence);
}

Flops mtp_flops(const ModelSpec& model, std::int64_t sequence) {
  const auto hidden = static_cast<double>(model.hidden);
  return multiply_adds(3 * hidden + 2 * hidden * hidden, sequence);
}

Flops model_flops_per_sequence(const ModelSpec& model, std::int64_t sequence) {
  const auto predictions = static_cast<double>(model.mtp_layers());
  const double layers = static_cast<double>(model.layers) + predictions;
  Flops forward = output_flops(model, sequence) * (1 + predictions);
  forward += (attention_matrix_flops(model, sequence) + attention_core_flops(model, sequence)) * layers;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    forward += feed_forward_flops(model, model.layer_is_moe(layer), sequence);
  // A prediction layer is built like the last layer.
  const bool last_is_moe = model.layers > 0 && model.layer_is_moe(model.layers - 1);
  forward += (mtp_flops(model, sequence) + feed_forward_flops(model, last_is_moe, sequence)) * predictions;
  return 3.0 * forward;
}

}  // namespace ebb
