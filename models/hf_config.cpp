// Source of keys, defaults and layers: Hugging Face transformers, models/*/configuration_*.py and modeling_*.py.
#include "models/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "models/errors.hpp"
#include "models/json_fields.hpp"
#include "models/model_yaml.hpp"
#include "models/nearest.hpp"
#include "models/text_file.hpp"
#include "models/yaml_tree.hpp"

namespace ebb {

namespace {

/// What the architecture decides.
struct Family {
  std::string_view architecture;
  bool gated = true;
  Norm norm = Norm::rmsnorm;
  bool qkv_bias = false;  // always, whatever attention_bias says
  bool qk_norm = false;
  bool mla = false;
  bool all_biases = false;  // on attention, router and experts (gpt-oss)
  bool sinks = false;
  bool expert_ffn_is_ffn = false;  // intermediate_size is an expert's
  bool post_norms = false;         // two more norms a layer
  bool output_bias = true;         // attention_bias is also the output projection's
};

constexpr Family kFamilies[] = {
    {.architecture = "LlamaForCausalLM"},
    {.architecture = "MistralForCausalLM"},
    {.architecture = "Qwen2ForCausalLM", .qkv_bias = true},
    {.architecture = "Qwen2MoeForCausalLM", .qkv_bias = true},
    {.architecture = "Qwen3ForCausalLM", .qk_norm = true},
    {.architecture = "Qwen3MoeForCausalLM", .qk_norm = true},
    {.architecture = "MixtralForCausalLM", .expert_ffn_is_ffn = true},
    {.architecture = "DeepseekV2ForCausalLM", .qk_norm = true, .mla = true},
    {.architecture = "DeepseekV3ForCausalLM", .qk_norm = true, .mla = true},
    {.architecture = "GptOssForCausalLM", .all_biases = true, .sinks = true, .expert_ffn_is_ffn = true},
    {.architecture = "GlmForCausalLM", .output_bias = false},
    {.architecture = "Glm4ForCausalLM", .post_norms = true, .output_bias = false},
    {.architecture = "Glm4MoeForCausalLM", .output_bias = false},
    {.architecture = "NemotronForCausalLM", .gated = false, .norm = Norm::layernorm},
};

/// The top-level keys of a configuration. A key whose value is null is absent.
class Config {
 public:
  Config(const Json& json, const std::string& file) : json_(json), file_(file) {}

  [[noreturn]] void reject(const std::string& problem, const std::string& cure) const {
    throw InputError(Place{file_}, problem, cure);
  }

  const Json* find(const char* key) const {
    const auto it = json_.find(key);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }

  std::optional<std::int64_t> find_count(const char* key, std::int64_t least = 1) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    constexpr std::int64_t kMost = 1'000'000'000;
    if (!value->is_number_integer() || *value < least || *value > kMost)
      reject(fmt::format("{} is {}, not a whole number from {} to {}", key, value->dump().substr(0, 40), least, kMost),
             "is this the model's config.json?");
    return value->get<std::int64_t>();
  }

  std::int64_t count(const char* key, std::int64_t otherwise, std::int64_t least = 1) const {
    return find_count(key, least).value_or(otherwise);
  }

  /// The first of `keys` that is there.
  std::int64_t require(std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (const auto value = find_count(key)) return *value;
    reject(fmt::format("the key \"{}\" is missing", *keys.begin()), "give the model's whole config.json");
  }

  bool flag(const char* key, bool otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) reject(fmt::format("{} is neither true nor false", key), "");
    return value->get<bool>();
  }

 private:
  const Json& json_;
  const std::string& file_;
};

const Family& family_of(const Config& config) {
  std::vector<std::string_view> known;
  for (const Family& family : kFamilies) known.push_back(family.architecture);
  const Json* list = config.find("architectures");
  if (list == nullptr || !list->is_array() || list->empty() || !(*list)[0].is_string())
    config.reject("the key \"architectures\" is missing", "give the model's whole config.json");
  const std::string name = (*list)[0].get<std::string>();
  for (const Family& family : kFamilies)
    if (family.architecture == name) return family;
  // Architectures are near to each other in spelling and far in shape: the list, no suggestion.
  config.reject(fmt::format("the architecture \"{}\" is not known", name.substr(0, 60)),
                fmt::format("known: {}; others can be written as a model YAML", fmt::join(known, ", ")));
}

void read_attention(const Config& config, const Family& family, HfModel& out) {
  ModelSpec& model = out.model;
  model.heads = config.require({"num_attention_heads"});
  model.kv_heads = family.mla ? model.heads : config.count("num_key_value_heads", model.heads);
  if (model.heads % model.kv_heads != 0)
    config.reject(fmt::format("{} heads do not divide into {} key-value heads", model.heads, model.kv_heads), "");
  const auto dim = config.find_count("head_dim");
  const auto channels = config.find_count("kv_channels");
  if (!dim && !channels && model.hidden % model.heads != 0 && !family.mla)
    config.reject(fmt::format("hidden_size {} does not divide into {} heads", model.hidden, model.heads),
                  "give head_dim");
  model.head_dim = family.mla ? config.require({"v_head_dim"})
                              : dim.value_or(channels.value_or(std::max<std::int64_t>(model.hidden / model.heads, 1)));
  model.qk_norm = family.qk_norm || config.flag("use_qk_norm", false);
  model.attention_sinks = family.sinks;
  model.bias = family.all_biases;
  const bool attention_bias = config.flag("attention_bias", false);
  model.qkv_bias = !model.bias && (family.qkv_bias || attention_bias);
  if (attention_bias && family.output_bias && !model.bias)
    out.not_modelled.emplace_back("the bias of the attention's output projection");
  if (config.flag("mlp_bias", false)) out.not_modelled.emplace_back("the biases of the feed-forward block");
  if (!family.mla) return;
  model.mla = MlaSpec{.q_lora_rank = config.count("q_lora_rank", 0, 0),
                      .kv_lora_rank = config.require({"kv_lora_rank"}),
                      .qk_head_dim = config.require({"qk_nope_head_dim"}),
                      .qk_rope_head_dim = config.require({"qk_rope_head_dim"}),
                      .v_head_dim = config.require({"v_head_dim"})};
}

/// '1' for a MoE layer. Qwen: every decoder_sparse_step-th layer, but for mlp_only_layers; DeepSeek and GLM: from
/// first_k_dense_replace on, every moe_layer_freq-th.
std::string moe_pattern(const Config& config, std::int64_t layers) {
  const std::int64_t step = config.count("decoder_sparse_step", 1);
  const std::int64_t first = config.count("first_k_dense_replace", 0, 0);
  const std::int64_t freq = config.count("moe_layer_freq", 1);
  std::string pattern;
  for (std::int64_t i = 0; i < layers; ++i) pattern += (i + 1) % step == 0 && i >= first && i % freq == 0 ? '1' : '0';
  const Json* dense = config.find("mlp_only_layers");
  if (dense == nullptr) return pattern;
  if (!dense->is_array()) config.reject("mlp_only_layers is not a list", "");
  for (const Json& layer : *dense)
    if (layer.is_number_integer() && layer >= 0 && layer < layers) pattern[layer.get<std::size_t>()] = '0';
  return pattern;
}

void read_moe(const Config& config, const Family& family, ModelSpec& model) {
  std::optional<std::int64_t> experts;
  for (const char* key : {"n_routed_experts", "num_experts", "num_local_experts"})
    if (!experts) experts = config.find_count(key);
  if (!experts) return;
  MoeSpec moe{.experts = *experts, .top_k = config.require({"num_experts_per_tok", "experts_per_token"})};
  moe.ffn = family.expert_ffn_is_ffn ? model.ffn : config.require({"moe_intermediate_size"});
  moe.shared_ffn = config.count("n_shared_experts", 0, 0) * moe.ffn;
  if (const auto shared = config.find_count("shared_expert_intermediate_size", 0)) {
    moe.shared_ffn = *shared;
    moe.shared_gate = *shared > 0;
  }
  if (moe.top_k > moe.experts)
    config.reject(fmt::format("a token goes to {} of {} experts", moe.top_k, moe.experts), "");
  const std::string pattern = moe_pattern(config, model.layers);
  if (pattern.find('1') != std::string::npos) model.moe = with_layers(moe, pattern);
}

}  // namespace

HfModel read_hf_config(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file, "give the model's config.json");
  const Config config(json, file);
  if (!json.is_object()) config.reject("this is not a configuration", "give the model's config.json");
  const Family& family = family_of(config);
  HfModel out;
  ModelSpec& model = out.model;
  model.name = std::filesystem::path(file).parent_path().filename().string();
  if (model.name.empty() || model.name == "." || model.name == "..")
    model.name = std::filesystem::path(file).stem().string();
  model.source = fmt::format("{} ({})", file, family.architecture);
  model.layers = config.require({"num_hidden_layers"});
  if (model.layers > 100'000) config.reject(fmt::format("{} layers", model.layers), "is this the model's config.json?");
  model.hidden = config.require({"hidden_size"});
  model.ffn = config.require({"intermediate_size"});
  model.vocab = config.require({"vocab_size"});
  model.gated = family.gated;
  model.norm = family.norm;
  model.tied_embeddings = config.flag("tie_word_embeddings", false);
  read_attention(config, family, out);
  read_moe(config, family, model);
  if (const std::int64_t layers = config.count("num_nextn_predict_layers", 0, 0); layers > 0)
    model.mtp = MtpSpec{.layers = std::min<std::int64_t>(layers, 100)};
  if (family.post_norms) out.not_modelled.emplace_back("the norms behind attention and feed-forward block");
  out.max_positions = config.count("max_position_embeddings", 0);
  check_model_size(model, Place{file});
  return out;
}

HfModel load_hf_config(const std::filesystem::path& file) {
  return read_hf_config(read_text_file(file, kMostYamlBytes), file.string());
}

}  // namespace ebb
