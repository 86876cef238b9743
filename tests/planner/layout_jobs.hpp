// Jobs with known layouts, for tests and benchmarks: published models, Megatron-LM's functional test cases and the
// measured job. Sizes are the publishers' (config.json) or those of the named model_config.yaml.
#pragma once

#include <cstdint>

#include "models/job.hpp"

namespace ebb::test {

inline ModelSpec llama3_8b() {
  ModelSpec m;
  m.layers = 32, m.hidden = 4096, m.ffn = 14336, m.heads = 32, m.kv_heads = 8, m.head_dim = 128, m.vocab = 128256;
  return m;
}

inline ModelSpec llama32_1b() {
  ModelSpec m;
  m.layers = 16, m.hidden = 2048, m.ffn = 8192, m.heads = 32, m.kv_heads = 8, m.head_dim = 64, m.vocab = 128256;
  m.tied_embeddings = true;
  return m;
}

inline ModelSpec qwen3_8b() {
  ModelSpec m;
  m.layers = 36, m.hidden = 4096, m.ffn = 12288, m.heads = 32, m.kv_heads = 8, m.head_dim = 128, m.vocab = 151936;
  m.qk_norm = true;
  return m;
}

inline ModelSpec mixtral_8x7b() {
  ModelSpec m;
  m.layers = 32, m.hidden = 4096, m.ffn = 14336, m.heads = 32, m.kv_heads = 8, m.head_dim = 128, m.vocab = 32000;
  m.moe = MoeSpec{.experts = 8, .top_k = 2, .ffn = 14336};
  return m;
}

inline ModelSpec deepseek_v3() {
  ModelSpec m;
  m.layers = 61, m.hidden = 7168, m.ffn = 18432, m.heads = 128, m.kv_heads = 128, m.head_dim = 128, m.vocab = 129280;
  m.qk_norm = true;
  m.mla = MlaSpec{.q_lora_rank = 1536, .kv_lora_rank = 512};
  m.moe = MoeSpec{.experts = 256, .top_k = 8, .ffn = 2048, .shared_ffn = 2048, .first_dense_layers = 3};
  m.mtp = MtpSpec{.layers = 1};
  return m;
}

inline ModelSpec gpt_oss_120b() {
  ModelSpec m;
  m.layers = 36, m.hidden = 2880, m.ffn = 2880, m.heads = 64, m.kv_heads = 8, m.head_dim = 64, m.vocab = 201088;
  m.bias = m.attention_sinks = true;
  m.moe = MoeSpec{.experts = 128, .top_k = 4, .ffn = 2880};
  return m;
}

/// The model of the measured runs, by layers, hidden, ffn and heads.
inline ModelSpec measured(std::int64_t layers, std::int64_t hidden, std::int64_t ffn, std::int64_t heads) {
  ModelSpec m;
  m.layers = layers, m.hidden = hidden, m.ffn = ffn, m.heads = m.kv_heads = heads, m.head_dim = hidden / heads;
  m.vocab = 50256;
  return m;
}

/// Megatron's defaults where a test case's flags are silent: LayerNorm, biases, plain activation with ffn = 4 hidden,
/// learned positions, tied embeddings (training/arguments.py).
inline ModelSpec megatron_default(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                                  std::int64_t positions) {
  ModelSpec m;
  m.layers = layers, m.hidden = hidden, m.ffn = 4 * hidden, m.heads = m.kv_heads = heads;
  m.head_dim = hidden / heads, m.vocab = vocab, m.max_positions = positions;
  m.gated = false, m.tied_embeddings = true, m.bias = true;
  m.norm = Norm::layernorm, m.positions = Positions::learned;
  return m;
}

/// tests/functional_tests/test_cases/gpt/gpt3_mcore_te_*: 12 layers of 512, GPT-2's vocabulary.
inline ModelSpec gpt3_small() { return megatron_default(12, 512, 8, 50257, 1024); }

/// .../gpt/gpt3_7b_tp4_pp1_memory_speed and gpt3_7b_tp1_pp4_memory_speed.
inline ModelSpec gpt3_7b() {
  ModelSpec m = megatron_default(32, 4096, 32, 131073, 8192);
  m.kv_heads = 8, m.tied_embeddings = false;
  return m;
}

/// .../gpt/gpt3_15b_8t_release.
inline ModelSpec gpt3_15b() {
  ModelSpec m = megatron_default(32, 6144, 48, 256000, 4096);
  m.kv_heads = 8, m.tied_embeddings = false, m.bias = false, m.positions = Positions::rope;
  return m;
}

/// .../moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_optimizer.
inline ModelSpec gpt3_small_moe() {
  ModelSpec m = gpt3_small();
  m.bias = false;
  m.moe = MoeSpec{.experts = 8, .top_k = 2, .ffn = 1024};
  return m;
}

/// A job on `gpus` GPUs with these parallel sizes; expert tensor parallelism follows tensor parallelism.
inline Job job(ModelSpec model, std::int64_t gpus, std::int64_t tensor = 1, std::int64_t pipeline = 1) {
  Job j;
  j.model = std::move(model);
  j.parallel.gpus = gpus, j.parallel.tensor = j.parallel.expert_tensor = tensor, j.parallel.pipeline = pipeline;
  return j;
}

/// DeepSeek-V3 on 2,048 GPUs as its report places it: 16 pipeline stages of at most four layers, EP 64.
inline Job deepseek_v3_2048() {
  Job j = job(deepseek_v3(), 2048, 1, 16);
  j.parallel.expert = 64, j.parallel.virtual_pipeline = 2;
  j.parallel.pipeline_layout = "Et*3|(tt|)*29m|L";
  return j;
}

}  // namespace ebb::test
