// The library's models have as many parameters as their publishers say, counted here in closed form straight from the
// published architecture. The planner counts them tensor by tensor (planner/parameters.hpp); its own test meets the
// same published figures, so that the two counts check each other.
#include <cstdlib>

#include "models/library.hpp"
#include "models/model_yaml.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

std::int64_t attention(const ModelSpec& m) {
  if (m.mla) {
    const MlaSpec& a = *m.mla;
    const std::int64_t query_width = m.heads * (a.qk_head_dim + a.qk_rope_head_dim);
    const std::int64_t query =
        a.q_lora_rank == 0 ? m.hidden * query_width : a.q_lora_rank * (m.hidden + 1 + query_width);
    const std::int64_t key_value = m.hidden * (a.kv_lora_rank + a.qk_rope_head_dim) + a.kv_lora_rank +
                                   a.kv_lora_rank * m.heads * (a.qk_head_dim + a.v_head_dim);
    return query + key_value + m.heads * a.v_head_dim * m.hidden;
  }
  const std::int64_t qkv_width = (m.heads + 2 * m.kv_heads) * m.head_dim;
  std::int64_t total = m.hidden * qkv_width + m.heads * m.head_dim * m.hidden;
  if (m.bias || m.qkv_bias) total += qkv_width;
  if (m.bias) total += m.hidden;
  if (m.qk_norm) total += 2 * m.head_dim;
  if (m.attention_sinks) total += m.heads;
  return total;
}

std::int64_t feed_forward(const ModelSpec& m, std::int64_t width) {
  const std::int64_t inputs = (m.gated ? 2 : 1) * width;
  return m.hidden * (inputs + width) + (m.bias ? inputs + m.hidden : 0);
}

std::int64_t experts(const ModelSpec& m) {
  std::int64_t total = m.moe->experts * (m.hidden + feed_forward(m, m.moe->ffn));
  if (m.bias || m.router_bias) total += m.moe->experts;
  if (m.moe->shared_ffn > 0) total += feed_forward(m, m.moe->shared_ffn);
  return total;
}

std::int64_t parameters(const ModelSpec& m) {
  const std::int64_t norm = m.hidden * (m.norm == Norm::layernorm ? 2 : 1);
  std::int64_t total = m.vocab * m.hidden * (m.tied_embeddings ? 1 : 2) + norm;
  if (m.positions == Positions::learned) total += m.max_positions * m.hidden;
  for (std::int64_t layer = 0; layer < m.layers; ++layer)
    total += attention(m) + 2 * norm + (m.layer_is_moe(layer) ? experts(m) : feed_forward(m, m.ffn));
  return total;
}

}  // namespace

TEST_CASE("every model has its publisher's number of parameters") {
  for (const std::string& name : library_names(Library::models)) {
    INFO(name);
    const ModelSpec model = load_model(library_path(Library::models, name));
    REQUIRE(model.published_parameters);
    INFO(parameters(model) << " counted, " << *model.published_parameters << " published");
    REQUIRE(std::llabs(parameters(model) - *model.published_parameters) <= model.published_rounding);
  }
}

TEST_CASE("published totals, typed in from the publishers rather than from the library") {
  const auto total = [](const char* name) { return parameters(load_model(library_path(Library::models, name))); };
  REQUIRE(total("llama3-8b") == 8'030'261'248);
  REQUIRE(total("llama3-70b") == 70'553'706'496);
  REQUIRE(total("llama3-405b") == 405'853'388'800);
  REQUIRE(total("llama3.2-1b") == 1'235'814'400);
  REQUIRE(total("qwen3-8b") == 8'190'735'360);
  REQUIRE(total("qwen3-30b-a3b") == 30'532'122'624);
  REQUIRE(total("qwen3-235b-a22b") == 235'093'634'560);
  REQUIRE(total("mixtral-8x7b") == 46'702'792'704);
  REQUIRE(total("mixtral-8x22b") == 140'620'634'112);
  REQUIRE(total("deepseek-v2-lite") == 15'706'484'224);
  REQUIRE(total("gpt-oss-120b") == 116'829'156'672);
  // The safetensors also hold 256 routing biases in each of the 58 MoE layers, which are no trained parameters.
  REQUIRE(total("deepseek-v3") + 58 * 256 == 671'026'419'200);
}

TEST_CASE("Megatron-LM's own totals, which include the padding of the vocabulary") {
  const auto padded = [](const char* name) {
    ModelSpec model = load_model(library_path(Library::models, name));
    model.vocab = 50304;
    return parameters(model);
  };
  REQUIRE(padded("megatron-1.8b") == 1'816'758'272);
  REQUIRE(padded("megatron-6.3b") == 6'349'114'368);
}
