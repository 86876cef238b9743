// The model that Megatron-LM's arguments describe. Source of names and defaults: Megatron-LM main, arguments.py
// (_add_network_size_args, _add_moe_args, _add_mla_args and validate_args).
#include <fmt/format.h>

#include <algorithm>

#include "models/model_yaml.hpp"
#include "planner/megatron_parts.hpp"
#include "planner/python_list.hpp"

namespace ebb {

namespace {

constexpr std::int64_t kGpt2Vocab = 50257;
constexpr std::size_t kMostLayers = 100'000;

/// --tokenizer-type and --vocab-size. NullTokenizer has one token more than it is told (end of document); what other
/// tokenizers have is in their files, which Ebb does not read.
void import_vocab(const MegatronImport& in, ModelSpec& model) {
  const MegatronValues& values = in.values;
  model.vocab_divisible_by = values.count("make-vocab-size-divisible-by", 128);
  if (const auto padded = values.find_count("padded-vocab-size")) {
    model.vocab = *padded;
    model.vocab_divisible_by = 1;
    return;
  }
  const std::string tokenizer = values.text("tokenizer-type", "");
  const std::optional<std::int64_t> size = values.find_count("vocab-size");
  model.vocab = size.value_or(kGpt2Vocab);
  if (size && (tokenizer == "NullTokenizer" || tokenizer == "NullMultimodalTokenizer"))
    ++model.vocab;
  else if (size && tokenizer != "TikTokenizer")
    in.note(ImportNoteKind::assumed, "vocab-size",
            fmt::format("the tokenizer has {} tokens; its files decide, and Ebb does not read them", model.vocab));
  else if (!size)
    in.note(ImportNoteKind::assumed, "vocab-size",
            fmt::format("the vocabulary is not named: GPT-2's {} tokens", model.vocab));
}

void import_attention(const MegatronImport& in, ModelSpec& model) {
  const MegatronValues& values = in.values;
  model.heads = values.require_count("num-attention-heads");
  model.kv_heads = model.heads;
  const bool latent = values.flag("multi-latent-attention");
  if (values.flag("group-query-attention") && !latent) model.kv_heads = values.count("num-query-groups", 1);
  if (model.heads % model.kv_heads != 0)
    values.reject("num-query-groups", fmt::format("{} heads do not divide into {} groups", model.heads, model.kv_heads),
                  "use a divisor of --num-attention-heads");
  const std::optional<std::int64_t> channels = values.find_count("kv-channels");
  if (!channels && model.hidden % model.heads != 0)
    values.reject("num-attention-heads",
                  fmt::format("--hidden-size {} does not divide into {} heads", model.hidden, model.heads),
                  "give --kv-channels, or change --num-attention-heads");
  model.head_dim = channels.value_or(model.hidden / model.heads);
  model.qk_norm = values.flag("qk-layernorm");
  model.qkv_bias = values.flag("add-qkv-bias");
  model.attention_sinks = values.text("softmax-type", "vanilla") == "learnable";
  if (!latent) return;
  model.mla = MlaSpec{.q_lora_rank = values.count("q-lora-rank", 0, 0),
                      .kv_lora_rank = values.count("kv-lora-rank", 32),
                      .qk_head_dim = values.count("qk-head-dim", 128),
                      .qk_rope_head_dim = values.count("qk-pos-emb-head-dim", 64),
                      .v_head_dim = values.count("v-head-dim", 128)};
}

void import_positions(const MegatronImport& in, ModelSpec& model) {
  static constexpr Choice<Positions> kTypes[] = {{"learned_absolute", Positions::learned},
                                                 {"rope", Positions::rope},
                                                 {"mrope", Positions::rope},
                                                 {"yarn", Positions::rope},
                                                 {"none", Positions::none}};
  const MegatronValues& values = in.values;
  model.positions = values.choice<Positions>("position-embedding-type", Positions::learned, kTypes);
  if (values.flag("use-rotary-position-embeddings")) model.positions = Positions::rope;
  if (values.flag("no-position-embedding") && model.positions == Positions::learned) model.positions = Positions::none;
  if (model.positions == Positions::learned) model.max_positions = values.require_count("max-position-embeddings");
}

/// --moe-layer-freq: a number n (layers 0, n, 2n, ... are MoE) or a list. False: no layer is.
bool import_moe_layers(const MegatronImport& in, const ModelSpec& model, MoeSpec& moe) {
  constexpr std::string_view kName = "moe-layer-freq";
  const MegatronArgument* argument = in.values.find(kName);
  const bool many = argument != nullptr && argument->values.size() > 1;  // a list of a YAML file
  const std::string text =
      many ? fmt::format("[{}]", fmt::join(in.values.words(kName), ",")) : in.values.text(kName, "1");
  if (text.find('[') == std::string::npos) {
    moe.layer_freq = in.values.count(kName, 1);
    return true;
  }
  const auto list = parse_python_list(text, kMostLayers, in.values.place_of(kName));
  if (list.size() != static_cast<std::size_t>(model.layers))
    in.values.reject(kName, fmt::format("the list has {} numbers, the model {} layers", list.size(), model.layers),
                     "give one number a layer, 1 for MoE and 0 for dense");
  std::string pattern;
  for (const std::int64_t is_moe : list) pattern += is_moe != 0 ? '1' : '0';
  if (pattern.find('1') == std::string::npos) return false;
  moe = with_layers(moe, pattern);
  return true;
}

void import_moe(const MegatronImport& in, ModelSpec& model) {
  const MegatronValues& values = in.values;
  const std::optional<std::int64_t> experts = values.find_count("num-experts");
  if (!experts) return;
  MoeSpec moe{.experts = *experts,
              .top_k = values.count("moe-router-topk", 2),
              .ffn = values.count("moe-ffn-hidden-size", model.ffn),
              .shared_ffn = values.count("moe-shared-expert-intermediate-size", 0, 0),
              .shared_gate = values.flag("moe-shared-expert-gate"),
              .latent = values.count("moe-latent-size", 0, 0)};
  if (moe.top_k > moe.experts)
    values.reject("moe-router-topk", fmt::format("a token goes to {} of {} experts", moe.top_k, moe.experts),
                  "use at most --num-experts");
  if (moe.shared_gate && moe.shared_ffn == 0)
    values.reject("moe-shared-expert-gate", "there is no shared expert",
                  "give --moe-shared-expert-intermediate-size, or leave it out");
  if (import_moe_layers(in, model, moe)) model.moe = moe;
}

}  // namespace

void import_model(const MegatronImport& in) {
  static constexpr Choice<Norm> kNorms[] = {{"LayerNorm", Norm::layernorm}, {"RMSNorm", Norm::rmsnorm}};
  const MegatronValues& values = in.values;
  ModelSpec model;
  model.name = in.job().name;
  model.source = fmt::format("Megatron-LM arguments in {}", in.job().file);
  model.layers = values.require_count(values.has("encoder-num-layers") ? "encoder-num-layers" : "num-layers");
  if (model.layers > static_cast<std::int64_t>(kMostLayers))
    values.reject("num-layers", fmt::format("{} is out of range", model.layers),
                  fmt::format("use at most {}", kMostLayers));
  model.hidden = values.require_count("hidden-size");
  model.gated = values.flag("swiglu") || values.flag("quick-geglu");
  // validate_args: 4 h, or with swiglu two thirds of it in multiples of 64.
  model.ffn =
      values.count("ffn-hidden-size", values.flag("swiglu") ? std::max<std::int64_t>(model.hidden * 8 / 3 / 64, 1) * 64
                                                            : 4 * model.hidden);
  import_attention(in, model);
  import_positions(in, model);
  model.bias = !values.flag("disable-bias-linear");
  model.norm = values.choice<Norm>("normalization", Norm::layernorm, kNorms);
  model.tied_embeddings = !values.flag("untie-embeddings-and-output-weights");
  import_vocab(in, model);
  import_moe(in, model);
  if (const std::int64_t layers = values.count("mtp-num-layers", 0, 0); layers > 0) {
    if (layers > 100) values.reject("mtp-num-layers", fmt::format("{} is out of range", layers), "use at most 100");
    model.mtp = MtpSpec{.layers = layers};
  }
  check_model_size(model, Place{in.job().file});
  in.job().model = model;
}

}  // namespace ebb
