// Order and shapes of a layer's parameters. Source: Megatron-LM main d98e8a64dd with its Transformer Engine layer
// specification (core/models/gpt/gpt_layer_specs.py), and of each module its constructor:
//   attention     core/transformer/attention.py: core attention, linear_proj, linear_qkv, q_layernorm, k_layernorm
//   MLA           core/transformer/multi_latent_attention.py: linear_proj, q projections, kv projections; with
//                 --qk-layernorm the latent norms are fused into the up projections
//   dense MLP     core/transformer/mlp.py: linear_fc1 (with the norm before the MLP fused), linear_fc2
//   MoE           core/transformer/moe/moe_layer.py: router, latent projections, grouped experts, shared experts
// A module's own parameters precede those of its children (torch's named_parameters), so the shared expert's gate
// comes before its linear layers. The local (not Transformer Engine) specification has the same tensors with the
// norms elsewhere; that only reorders vectors among themselves.
// Not here: SequentialMLP (experts without --moe-grouped-gemm) orders the same expert tensors expert by expert.
#include "planner/layer_parameters.hpp"

namespace ebb {

std::int64_t divide(std::int64_t value, std::int64_t parts) {
  EBB_ASSERT(parts > 0 && value % parts == 0);
  return value / parts;
}

ParameterList::ParameterList(const Job& job)
    : low_precision_(job.precision.fp8 != Fp8Recipe::none || job.precision.fp4 != Fp4Recipe::none),
      gather_(job.precision.fp8_param_gather || job.precision.fp4_param_gather),
      separate_experts_(job.parallel.expert > 1 || job.parallel.expert_tensor != job.parallel.tensor),
      norm_bias_(job.model.norm == Norm::layernorm) {}

Parameter& ParameterList::add(std::string_view name, std::int64_t rows, std::int64_t columns) {
  Parameter& parameter = parameters_.emplace_back();
  parameter.name.reserve(prefix_.size() + name.size());
  parameter.name.append(prefix_).append(name);
  parameter.rows = rows;
  parameter.columns = columns;
  // Vectors do not decay; neither do biases, which are vectors too (core/optimizer/__init__.py).
  parameter.decayed = columns != 0;
  EBB_ASSERT(parameter.numel().value > 0);
  return parameter;
}

void ParameterList::linear(std::string_view name, std::int64_t rows, std::int64_t columns, Held held) {
  matrix(name, rows, columns, held);
  last().low_precision = low_precision_ && layer_allows_;
  last().quantized = last().low_precision && gather_;
}

void ParameterList::matrix(std::string_view name, std::int64_t rows, std::int64_t columns, Held held) {
  EBB_ASSERT(columns > 0);
  add(name, rows, columns).tensor_parallel = held == Held::split;
}

void ParameterList::vector(std::string_view name, std::int64_t size, Held held) {
  add(name, size, 0).tensor_parallel = held == Held::split;
}

void ParameterList::norm(std::string_view name, std::int64_t size) {
  vector(std::string(name) + ".weight", size, Held::copied);
  if (norm_bias_) vector(std::string(name) + ".bias", size, Held::copied);
}

void ParameterList::fused_norm(std::string_view name, std::int64_t size) {
  vector(std::string(name) + ".layer_norm_weight", size, Held::copied);
  if (norm_bias_) vector(std::string(name) + ".layer_norm_bias", size, Held::copied);
}

void ParameterList::expert_linear(std::string_view name, std::int64_t index, std::int64_t rows, std::int64_t columns) {
  linear(std::string(name) + ".weight" + std::to_string(index), rows, columns, Held::split);
  last().expert = separate_experts_;
}

void ParameterList::expert_bias(std::string_view name, std::int64_t index, std::int64_t size) {
  vector(std::string(name) + ".bias" + std::to_string(index), size, Held::split);
  last().expert = separate_experts_;
}

namespace {

/// Rows of an MLP's first layer: a gated one computes gate and value at once.
std::int64_t fc1_rows(const ModelSpec& model, std::int64_t ffn) { return model.gated ? 2 * ffn : ffn; }

void append_latent_attention(ParameterList& list, const Job& job) {
  const ModelSpec& model = job.model;
  const MlaSpec& mla = *model.mla;
  const std::int64_t heads = divide(model.heads, job.parallel.tensor);
  const std::int64_t query = mla.qk_head_dim + mla.qk_rope_head_dim;

  list.linear("self_attention.linear_proj.weight", model.hidden, heads * mla.v_head_dim, Held::split);
  if (model.bias) list.vector("self_attention.linear_proj.bias", model.hidden, Held::copied);
  if (mla.q_lora_rank == 0) {
    list.linear("self_attention.linear_q_proj.weight", heads * query, model.hidden, Held::split);
  } else {
    list.linear("self_attention.linear_q_down_proj.weight", mla.q_lora_rank, model.hidden, Held::copied);
    if (model.qk_norm) list.fused_norm("self_attention.linear_q_up_proj", mla.q_lora_rank);
    list.linear("self_attention.linear_q_up_proj.weight", heads * query, mla.q_lora_rank, Held::split);
  }
  list.linear("self_attention.linear_kv_down_proj.weight", mla.kv_lora_rank + mla.qk_rope_head_dim, model.hidden,
              Held::copied);
  if (model.qk_norm) list.fused_norm("self_attention.linear_kv_up_proj", mla.kv_lora_rank);
  list.linear("self_attention.linear_kv_up_proj.weight", heads * (mla.qk_head_dim + mla.v_head_dim), mla.kv_lora_rank,
              Held::split);
}

void append_attention(ParameterList& list, const Job& job) {
  const ModelSpec& model = job.model;
  const std::int64_t heads = divide(model.heads, job.parallel.tensor);
  // The fused projection is split by rows, whole groups or not: with fewer groups than ranks, a group's rows lie on
  // several ranks.
  const std::int64_t qkv = divide((model.heads + 2 * model.kv_heads) * model.head_dim, job.parallel.tensor);

  if (model.attention_sinks) list.vector("self_attention.core_attention.softmax_offset", heads, Held::split);
  list.linear("self_attention.linear_proj.weight", model.hidden, heads * model.head_dim, Held::split);
  if (model.bias) list.vector("self_attention.linear_proj.bias", model.hidden, Held::copied);
  list.fused_norm("self_attention.linear_qkv", model.hidden);
  list.linear("self_attention.linear_qkv.weight", qkv, model.hidden, Held::split);
  if (model.bias || model.qkv_bias) list.vector("self_attention.linear_qkv.bias", qkv, Held::split);
  if (model.qk_norm) {
    list.norm("self_attention.q_layernorm", model.head_dim);
    list.norm("self_attention.k_layernorm", model.head_dim);
  }
}

void append_dense_mlp(ParameterList& list, const Job& job) {
  const ModelSpec& model = job.model;
  const std::int64_t ffn = divide(model.ffn, job.parallel.tensor);
  list.fused_norm("mlp.linear_fc1", model.hidden);
  list.linear("mlp.linear_fc1.weight", fc1_rows(model, ffn), model.hidden, Held::split);
  if (model.bias) list.vector("mlp.linear_fc1.bias", fc1_rows(model, ffn), Held::split);
  list.linear("mlp.linear_fc2.weight", model.hidden, ffn, Held::split);
  if (model.bias) list.vector("mlp.linear_fc2.bias", model.hidden, Held::copied);
}

/// TE's GroupedLinear registers weight and bias of one expert before those of the next.
void append_routed_experts(ParameterList& list, const Job& job) {
  const ModelSpec& model = job.model;
  const std::int64_t local = divide(model.moe->experts, job.parallel.expert);
  const std::int64_t ffn = divide(model.moe->ffn, job.parallel.expert_tensor);
  const std::int64_t width = model.moe->latent > 0 ? model.moe->latent : model.hidden;
  for (std::int64_t i = 0; i < local; ++i) {
    list.expert_linear("mlp.experts.linear_fc1", i, fc1_rows(model, ffn), width);
    if (model.bias) list.expert_bias("mlp.experts.linear_fc1", i, fc1_rows(model, ffn));
  }
  for (std::int64_t i = 0; i < local; ++i) {
    list.expert_linear("mlp.experts.linear_fc2", i, width, ffn);
    if (model.bias) list.expert_bias("mlp.experts.linear_fc2", i, width);
  }
}

void append_moe(ParameterList& list, const Job& job) {
  const ModelSpec& model = job.model;
  const MoeSpec& moe = *model.moe;
  list.matrix("mlp.router.weight", moe.experts, model.hidden, Held::copied);
  if (model.bias || model.router_bias) list.vector("mlp.router.bias", moe.experts, Held::copied);
  if (moe.latent > 0) {
    list.linear("mlp.fc1_latent_proj.weight", moe.latent, model.hidden, Held::copied);
    if (model.bias) list.vector("mlp.fc1_latent_proj.bias", moe.latent, Held::copied);
    list.linear("mlp.fc2_latent_proj.weight", model.hidden, moe.latent, Held::copied);
    if (model.bias) list.vector("mlp.fc2_latent_proj.bias", model.hidden, Held::copied);
  }
  append_routed_experts(list, job);
  if (moe.shared_ffn == 0) return;
  // Shared experts are dense parameters and have no biases (core/transformer/moe/shared_experts.py).
  const std::int64_t shared = divide(moe.shared_ffn, job.parallel.tensor);
  if (moe.shared_gate) list.matrix("mlp.shared_experts.gate_weight", 1, model.hidden, Held::copied);
  list.linear("mlp.shared_experts.linear_fc1.weight", fc1_rows(model, shared), model.hidden, Held::split);
  list.linear("mlp.shared_experts.linear_fc2.weight", model.hidden, shared, Held::split);
}

}  // namespace

void append_layer(ParameterList& list, const Job& job, bool moe) {
  if (job.model.mla) {
    list.norm("input_layernorm", job.model.hidden);
    append_latent_attention(list, job);
  } else {
    append_attention(list, job);
  }
  if (moe) {
    list.norm("pre_mlp_layernorm", job.model.hidden);
    append_moe(list, job);
  } else {
    append_dense_mlp(list, job);
  }
}

}  // namespace ebb
