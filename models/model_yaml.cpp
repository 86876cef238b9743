#include "models/model_yaml.hpp"

#include <fmt/format.h>

#include "models/hf_config.hpp"
#include "models/text_file.hpp"
#include "models/yaml_fields.hpp"

namespace ebb {

namespace {

constexpr Choice<Norm> kNorms[] = {{"rmsnorm", Norm::rmsnorm}, {"layernorm", Norm::layernorm}};
constexpr Choice<Positions> kPositions[] = {
    {"rope", Positions::rope}, {"learned", Positions::learned}, {"none", Positions::none}};

[[noreturn]] void reject(const YamlFields& fields, std::string_view key, const std::string& problem,
                         const std::string& cure) {
  throw InputError(fields.place_of(key), problem, cure);
}

MlaSpec read_mla(const YamlFields& fields) {
  MlaSpec mla;
  fields.require("kv_lora_rank");
  fields.count("q_lora_rank", mla.q_lora_rank, 0);
  fields.count("kv_lora_rank", mla.kv_lora_rank);
  fields.count("qk_head_dim", mla.qk_head_dim);
  fields.count("qk_rope_head_dim", mla.qk_rope_head_dim);
  fields.count("v_head_dim", mla.v_head_dim);
  return mla;
}

void check_layer_pattern(const YamlFields& fields, const MoeSpec& moe, const ModelSpec& model) {
  const std::string& pattern = moe.layer_pattern;
  if (pattern.size() != static_cast<std::size_t>(model.layers) || pattern.find_first_not_of("01") != std::string::npos)
    reject(fields, "layer_pattern", "layer_pattern does not say of every layer whether it is MoE",
           fmt::format("write {} characters, 1 for a MoE layer and 0 for a dense one", model.layers));
  if (pattern.find('1') == std::string::npos)
    reject(fields, "layer_pattern", "layer_pattern has no MoE layer", "leave the block moe out");
  if (moe.first_dense_layers != 0 || moe.layer_freq != 1)
    reject(fields, "layer_pattern", "layer_pattern says again what first_dense_layers and layer_freq say",
           "leave those two out");
}

MoeSpec read_moe(const YamlFields& fields, const ModelSpec& model) {
  MoeSpec moe;
  fields.require("experts");
  fields.require("top_k");
  moe.ffn = model.ffn;  // as Megatron: --moe-ffn-hidden-size defaults to --ffn-hidden-size
  if (moe.ffn == 0) fields.require("ffn");
  fields.count("experts", moe.experts);
  fields.count("top_k", moe.top_k);
  fields.count("ffn", moe.ffn);
  fields.count("shared_ffn", moe.shared_ffn, 0);
  fields.boolean("shared_gate", moe.shared_gate);
  fields.count("latent", moe.latent, 0);
  fields.count("first_dense_layers", moe.first_dense_layers, 0);
  fields.count("layer_freq", moe.layer_freq);
  fields.text("layer_pattern", moe.layer_pattern);
  if (fields.find("layer_pattern") != nullptr) check_layer_pattern(fields, moe, model);
  if (moe.top_k > moe.experts)
    reject(fields, "top_k", fmt::format("top_k {} is more than the {} experts", moe.top_k, moe.experts),
           "a token goes to different experts: use at most their number");
  if (moe.shared_gate && moe.shared_ffn == 0)
    reject(fields, "shared_gate", "shared_gate needs a shared expert", "give shared_ffn, or leave shared_gate out");
  if (moe.first_dense_layers >= model.layers)
    reject(fields, "first_dense_layers",
           fmt::format("with first_dense_layers {} none of the {} layers is MoE", moe.first_dense_layers, model.layers),
           "use fewer, or leave the block moe out");
  return moe;
}

void read_attention(const YamlFields& fields, ModelSpec& model) {
  fields.require("heads");
  fields.count("heads", model.heads);
  model.kv_heads = model.heads;
  fields.count("kv_heads", model.kv_heads);
  if (model.heads % model.kv_heads != 0)
    reject(fields, "kv_heads", fmt::format("{} heads do not divide into {} kv_heads", model.heads, model.kv_heads),
           "each group of queries shares one: use a divisor of heads");
  if (fields.find("head_dim") == nullptr) {
    if (model.hidden % model.heads != 0)
      reject(fields, "heads", fmt::format("hidden {} does not divide into {} heads", model.hidden, model.heads),
             "give head_dim, or change heads");
    model.head_dim = model.hidden / model.heads;
  }
  fields.count("head_dim", model.head_dim);
  if (const auto mla =
          fields.nested("mla", {"q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_rope_head_dim", "v_head_dim"})) {
    model.mla = read_mla(*mla);
    if (model.kv_heads != model.heads)
      reject(fields, "kv_heads", "latent attention (mla) has as many kv_heads as heads", "leave kv_heads out");
  }
}

void read_published(const YamlFields& fields, ModelSpec& model) {
  if (fields.find("published_parameters") != nullptr) {
    model.published_parameters.emplace();
    fields.count("published_parameters", *model.published_parameters, 1, kMostParameters);
  }
  fields.count("published_rounding", model.published_rounding, 0, kMostParameters);
  if (model.published_rounding > 0 && !model.published_parameters)
    reject(fields, "published_rounding", "published_rounding says how published_parameters is rounded",
           "add published_parameters, or leave it out");
}

}  // namespace

void check_model_size(const ModelSpec& model, const Place& place) {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double experts = model.moe ? real(model.moe->experts) * real(model.moe->ffn) + real(model.moe->shared_ffn) : 0;
  const double attention = 4 * real(model.heads) * real(model.head_dim);
  const double latent = model.mla ? real(model.mla->q_lora_rank) + real(model.mla->kv_lora_rank) : 0;
  const double latent_heads =
      model.mla ? real(model.heads) * real(model.mla->qk_head_dim + model.mla->qk_rope_head_dim + model.mla->v_head_dim)
                : 0;
  const double layer = real(model.hidden) * (3 * (real(model.ffn) + experts) + attention + latent + latent_heads) +
                       latent * latent_heads;
  const double total = real(model.layers + model.mtp_layers()) * layer +
                       real(model.hidden) * 2 * real(model.vocab + model.max_positions);
  if (total > real(kMostParameters))
    throw InputError(place, "this model would have more than 10^15 parameters",
                     "check layers, hidden, ffn, experts and vocab");
}

MoeSpec with_layers(MoeSpec moe, const std::string& pattern) {
  const std::size_t first = pattern.find('1');
  const std::size_t second = pattern.find('1', first + 1);
  const std::size_t freq = second == std::string::npos ? pattern.size() : second - first;
  std::string said;
  for (std::size_t i = 0; i < pattern.size(); ++i) said += i >= first && (i - first) % freq == 0 ? '1' : '0';
  if (said != pattern) {
    moe.layer_pattern = pattern;
    return moe;
  }
  moe.first_dense_layers = static_cast<std::int64_t>(first);
  moe.layer_freq = static_cast<std::int64_t>(freq);
  return moe;
}

ModelSpec read_model(const YamlNode& node, const std::string& name, const std::string& path) {
  const YamlFields fields(node, path,
                          {"name",
                           "layers",
                           "hidden",
                           "ffn",
                           "heads",
                           "kv_heads",
                           "head_dim",
                           "vocab",
                           "positions",
                           "max_positions",
                           "gated",
                           "tied_embeddings",
                           "norm",
                           "bias",
                           "qkv_bias",
                           "router_bias",
                           "qk_norm",
                           "attention_sinks",
                           "mla",
                           "moe",
                           "mtp",
                           "source",
                           "published_parameters",
                           "published_rounding",
                           "vocab_divisible_by"});
  ModelSpec model;
  model.name = name;
  fields.text("name", model.name);
  for (const char* key : {"layers", "hidden", "vocab"}) fields.require(key);
  fields.count("layers", model.layers, 1, 100'000);
  fields.count("hidden", model.hidden);
  fields.count("vocab", model.vocab);
  fields.count("vocab_divisible_by", model.vocab_divisible_by);
  const YamlNode* moe = fields.find("moe");
  if (moe == nullptr) fields.require("ffn");
  fields.count("ffn", model.ffn);
  read_attention(fields, model);
  if (const auto block = fields.nested("moe", {"experts", "top_k", "ffn", "shared_ffn", "shared_gate", "latent",
                                               "first_dense_layers", "layer_freq", "layer_pattern"})) {
    model.moe = read_moe(*block, model);
    const bool some_dense = model.moe->first_dense_layers > 0 || model.moe->layer_freq > 1 ||
                            model.moe->layer_pattern.find('0') != std::string::npos;
    if (some_dense) fields.require("ffn");
    if (model.ffn == 0) model.ffn = model.moe->ffn;
  }
  if (const auto block = fields.nested("mtp", {"layers"})) {
    model.mtp.emplace();
    block->require("layers");
    block->count("layers", model.mtp->layers, 1, 100);
  }
  fields.choice<Norm>("norm", model.norm, kNorms);
  fields.choice<Positions>("positions", model.positions, kPositions);
  if (model.positions == Positions::learned) fields.require("max_positions");
  fields.count("max_positions", model.max_positions, 0);
  fields.boolean("gated", model.gated);
  fields.boolean("tied_embeddings", model.tied_embeddings);
  fields.boolean("bias", model.bias);
  fields.boolean("qkv_bias", model.qkv_bias);
  fields.boolean("router_bias", model.router_bias);
  fields.boolean("qk_norm", model.qk_norm);
  fields.boolean("attention_sinks", model.attention_sinks);
  read_published(fields, model);
  fields.text("source", model.source);
  check_model_size(model, fields.place());
  return model;
}

ModelSpec load_model(const std::filesystem::path& file) {
  if (file.extension() == ".json") return load_hf_config(file).model;
  const std::string text = read_text_file(file, kMostYamlBytes);
  return read_model(parse_yaml(text, file.string()), file.stem().string());
}

void write_model(const ModelSpec& model, YamlWriter& writer) {
  writer.field("name", model.name);
  writer.field("layers", model.layers);
  writer.field("hidden", model.hidden);
  writer.field("ffn", model.ffn);
  writer.field("heads", model.heads);
  writer.field("kv_heads", model.kv_heads);
  writer.field("head_dim", model.head_dim);
  writer.field("vocab", model.vocab);
  writer.field("vocab_divisible_by", model.vocab_divisible_by);
  writer.field("positions", word_of(model.positions, kPositions));
  writer.field("max_positions", model.max_positions);
  writer.field("norm", word_of(model.norm, kNorms));
  writer.field("gated", model.gated);
  writer.field("tied_embeddings", model.tied_embeddings);
  writer.field("bias", model.bias);
  writer.field("qkv_bias", model.qkv_bias);
  writer.field("router_bias", model.router_bias);
  writer.field("qk_norm", model.qk_norm);
  writer.field("attention_sinks", model.attention_sinks);
  if (model.mla) {
    writer.open("mla");
    writer.field("q_lora_rank", model.mla->q_lora_rank);
    writer.field("kv_lora_rank", model.mla->kv_lora_rank);
    writer.field("qk_head_dim", model.mla->qk_head_dim);
    writer.field("qk_rope_head_dim", model.mla->qk_rope_head_dim);
    writer.field("v_head_dim", model.mla->v_head_dim);
    writer.close();
  }
  if (model.moe) {
    writer.open("moe");
    writer.field("experts", model.moe->experts);
    writer.field("top_k", model.moe->top_k);
    writer.field("ffn", model.moe->ffn);
    writer.field("shared_ffn", model.moe->shared_ffn);
    writer.field("shared_gate", model.moe->shared_gate);
    writer.field("latent", model.moe->latent);
    writer.field("first_dense_layers", model.moe->first_dense_layers);
    writer.field("layer_freq", model.moe->layer_freq);
    if (!model.moe->layer_pattern.empty()) writer.field("layer_pattern", model.moe->layer_pattern);
    writer.close();
  }
  if (model.mtp) {
    writer.open("mtp");
    writer.field("layers", model.mtp->layers);
    writer.close();
  }
  if (model.published_parameters) writer.field("published_parameters", *model.published_parameters);
  if (model.published_rounding > 0) writer.field("published_rounding", model.published_rounding);
  writer.field("source", model.source);
}

std::string write_model(const ModelSpec& model) {
  YamlWriter writer;
  write_model(model, writer);
  return writer.text();
}

}  // namespace ebb
