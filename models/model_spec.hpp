// ModelSpec: the architecture of a transformer, as far as its parameters, activations and FLOPs need it.
// Names follow the job and model YAML (design: "Files a user writes"). Not here: how it is parallelised
// (Job) and the list of its parameters (planner/parameters.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ebb {

enum class Norm : std::uint8_t { rmsnorm, layernorm };
enum class Positions : std::uint8_t { rope, learned, none };

/// Multi-head latent attention (DeepSeek-V2/V3). q_lora_rank 0: one direct query projection.
struct MlaSpec {
  std::int64_t q_lora_rank = 0;
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_head_dim = 128;      // without the rotary part
  std::int64_t qk_rope_head_dim = 64;  // the rotary part
  std::int64_t v_head_dim = 128;

  bool operator==(const MlaSpec&) const = default;
};

/// Mixture of experts. Which layers have one is said by `first_dense_layers` and `layer_freq`, or by `layer_pattern`.
struct MoeSpec {
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t ffn = 0;         // intermediate size of one expert
  std::int64_t shared_ffn = 0;  // total intermediate size of the shared experts; 0: none
  bool shared_gate = false;     // a [1, hidden] gate on the shared expert (Qwen2-MoE)
  std::int64_t latent = 0;      // latent size of routed experts; 0: they work on hidden
  std::int64_t first_dense_layers = 0;
  std::int64_t layer_freq = 1;  // after the first dense layers, every layer_freq-th layer is MoE
  std::string layer_pattern{};  // a character a layer, '1' MoE and '0' dense, where the two numbers cannot say it

  bool operator==(const MoeSpec&) const = default;
};

/// Multi-token prediction: `layers` extra transformer layers, each with enorm, hnorm, eh_proj and a final norm.
struct MtpSpec {
  std::int64_t layers = 0;

  bool operator==(const MtpSpec&) const = default;
};

/// No model file may ask for more parameters: sums of elements and bytes stay far inside int64.
inline constexpr std::int64_t kMostParameters = 1'000'000'000'000'000;

struct ModelSpec {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;  // dense layers
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // query groups; == heads without GQA
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;                 // as published, before padding
  std::int64_t vocab_divisible_by = 128;  // Megatron's --make-vocab-size-divisible-by
  std::int64_t max_positions = 0;         // rows of a learned position embedding
  bool gated = true;                      // SwiGLU-like: fc1 has two halves
  bool tied_embeddings = false;
  bool bias = false;             // biases on all linear layers (Megatron: absence of --disable-bias-linear)
  bool qkv_bias = false;         // bias on the QKV projection alone (--add-qkv-bias)
  bool router_bias = false;      // a trained router bias although `bias` is false
  bool qk_norm = false;          // per-head norms of queries and keys
  bool attention_sinks = false;  // one learned softmax offset per head (gpt-oss)
  Norm norm = Norm::rmsnorm;
  Positions positions = Positions::rope;
  std::optional<MlaSpec> mla;
  std::optional<MoeSpec> moe;
  std::optional<MtpSpec> mtp;
  /// The publisher's total without vocabulary padding and without MTP layers, when known.
  std::optional<std::int64_t> published_parameters;
  std::int64_t published_rounding = 0;  // published_parameters is only known to within +- this; 0: exact
  std::string source;                   // where the figures come from

  bool layer_is_moe(std::int64_t layer) const {
    if (!moe) return false;
    if (!moe->layer_pattern.empty()) return moe->layer_pattern.at(static_cast<std::size_t>(layer)) == '1';
    return layer >= moe->first_dense_layers && (layer - moe->first_dense_layers) % moe->layer_freq == 0;
  }
  std::int64_t mtp_layers() const { return mtp ? mtp->layers : 0; }
  bool operator==(const ModelSpec&) const = default;
};

}  // namespace ebb
