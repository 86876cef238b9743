// Hugging Face configurations: the published figures of each family become the model whose parameters its publisher
// counts (typed in below, not taken from the library), and what is no such configuration is an InputError.
#include "models/hf_config.hpp"

#include <random>
#include <string>

#include "models/job_yaml.hpp"
#include "models/library.hpp"
#include "models/model_yaml.hpp"
#include "models/text_file.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

namespace {

std::string path_of(const std::string& name) { return std::string(EBB_TEST_DATA "/hf/") + name + "/config.json"; }

/// Shape for shape what the library says, which has its figures from the same publishers by another hand.
ModelSpec shape_of(ModelSpec model) {
  model.name.clear();
  model.source.clear();
  model.published_parameters.reset();
  model.published_rounding = 0;
  if (model.moe && model.moe->first_dense_layers == 0 && model.moe->layer_freq == 1) model.ffn = 0;  // no dense layer
  if (model.mla) model.qk_norm = true;  // the library leaves the latents' norms out
  return model;
}

std::string error_in(const std::string& text) {
  return error_of([&] { read_hf_config(text, "config.json"); });
}

}  // namespace

TEST_CASE("configurations have the shapes of the library's models") {
  for (const char* name : {"llama3-8b", "llama3.2-1b", "qwen3-8b", "qwen3-30b-a3b", "mixtral-8x7b", "deepseek-v2-lite",
                           "deepseek-v3", "gpt-oss-120b"}) {
    INFO(name);
    const HfModel imported = load_hf_config(path_of(name));
    const ModelSpec known = load_model(library_path(Library::models, name));
    REQUIRE(shape_of(imported.model) == shape_of(known));
    REQUIRE(imported.model.name == name);
    REQUIRE(imported.not_modelled.empty());
    REQUIRE(read_model(parse_yaml(write_model(imported.model), "m.yaml"), "m") == imported.model);
  }
}

TEST_CASE("families that the library has no model of") {
  const ModelSpec qwen = load_hf_config(path_of("qwen2.5-7b")).model;
  REQUIRE(qwen.qkv_bias);
  REQUIRE_FALSE(qwen.bias);
  REQUIRE_FALSE(qwen.qk_norm);
  REQUIRE(qwen.head_dim == 128);

  const HfModel glm = load_hf_config(path_of("glm-4.5"));
  REQUIRE(glm.model.qk_norm);
  REQUIRE(glm.model.qkv_bias);
  REQUIRE(glm.model.moe->first_dense_layers == 3);
  REQUIRE(glm.model.moe->shared_ffn == 1536);
  REQUIRE(glm.model.mtp->layers == 1);
  REQUIRE(glm.max_positions == 131072);

  const ModelSpec nemotron = load_hf_config(path_of("nemotron-4b")).model;
  REQUIRE_FALSE(nemotron.gated);
  REQUIRE(nemotron.norm == Norm::layernorm);
  REQUIRE(nemotron.head_dim == 128);
  REQUIRE(load_hf_config(path_of("glm-4-9b")).model.kv_heads == 2);
}

TEST_CASE("dense layers among experts, wherever they are") {
  const std::string moe =
      "{\"architectures\": [\"Qwen3MoeForCausalLM\"], \"num_hidden_layers\": 6, \"hidden_size\": 64, "
      "\"intermediate_size\": 128, \"vocab_size\": 1000, \"num_attention_heads\": 4, \"num_experts\": 8, "
      "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32, ";
  const auto layers = [&](const std::string& more) {
    const ModelSpec model = read_hf_config(moe + more + "}", "config.json").model;
    std::string pattern;
    for (std::int64_t i = 0; i < model.layers; ++i) pattern += model.layer_is_moe(i) ? '1' : '0';
    return pattern;
  };
  REQUIRE(layers("\"decoder_sparse_step\": 1") == "111111");
  REQUIRE(layers("\"decoder_sparse_step\": 2") == "010101");
  REQUIRE(layers("\"mlp_only_layers\": [0, 4]") == "011101");
  REQUIRE(layers("\"decoder_sparse_step\": 9") == "000000");
}

TEST_CASE("a job's model may be a config.json") {
  const std::string text =
      "model: hf/qwen3-8b/config.json\ncluster: hgx-h200\nparallel: {gpus: 8}\n"
      "batch: {global: 64, sequence: 8192}\n";
  const Job job = read_job(parse_yaml(text, "j.yaml"), EBB_TEST_DATA "/j.yaml");
  REQUIRE(job.model.layers == 36);
  REQUIRE(job.model.qk_norm);
}

TEST_CASE("what is no configuration") {
  REQUIRE(error_in("") == "config.json:1:1: this is not valid JSON; give the model's config.json");
  REQUIRE(error_in("[1, 2]").starts_with("config.json: this is not a configuration"));
  REQUIRE(error_in("{}").starts_with("config.json: the key \"architectures\" is missing"));
  REQUIRE(error_in("{\"architectures\": [\"BertModel\"]}")
              .starts_with("config.json: the architecture \"BertModel\" is not known; known: LlamaForCausalLM, "));
  const std::string llama =
      "{\"architectures\": [\"LlamaForCausalLM\"], \"num_hidden_layers\": 2, \"hidden_size\": 64, ";
  REQUIRE(error_in(llama + "\"vocab_size\": 9}").starts_with("config.json: the key \"intermediate_size\" is missing"));
  REQUIRE(error_in(llama + "\"intermediate_size\": \"many\"}")
              .starts_with("config.json: intermediate_size is \"many\", not a whole number"));
  REQUIRE(error_in(llama + "\"intermediate_size\": 99999999999999999999}")
              .starts_with("config.json: intermediate_size is "));
  REQUIRE(error_in(llama + "\"intermediate_size\": 64, \"vocab_size\": 9, \"num_attention_heads\": 3}")
              .starts_with("config.json: hidden_size 64 does not divide into 3 heads"));
}

TEST_CASE("mutated configurations") {
  const std::string original = read_text_file(path_of("deepseek-v3"), 1 << 20);
  static const std::string kTokens[] = {"null", "-1", "1e99", "[", "}", "\"", "{}", "0", "true", ",", "999999999"};
  std::mt19937 random(20261130);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = original;
    for (auto edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text.erase(at, 1 + random() % 8);
      else
        text.replace(at, random() % 4, kTokens[random() % std::size(kTokens)]);
    }
    const std::string error = error_in(text);
    REQUIRE(error.size() < 1000);
    if (error.empty()) continue;
    ++refused;
    REQUIRE(error.starts_with("config.json"));
  }
  REQUIRE(refused > 1000);
}
