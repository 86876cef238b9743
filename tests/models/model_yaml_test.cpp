// Model files: defaults as Megatron's, and each mistake named with its place and cure.
#include "models/model_yaml.hpp"

#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

namespace {

ModelSpec model(const std::string& text) { return read_model(parse_yaml(text, "m.yaml"), "m"); }
std::string model_error(const std::string& text) {
  return error_of([&] { model(text); });
}

const std::string kSmall = "layers: 2\nhidden: 64\nffn: 256\nheads: 4\nvocab: 1000\n";

}  // namespace

TEST_CASE("defaults") {
  const ModelSpec spec = model(kSmall);
  REQUIRE(spec.name == "m");
  REQUIRE(spec.kv_heads == 4);
  REQUIRE(spec.head_dim == 16);
  REQUIRE(spec.vocab_divisible_by == 128);
  REQUIRE(spec.gated);
  REQUIRE(spec.norm == Norm::rmsnorm);
  REQUIRE(spec.positions == Positions::rope);
  REQUIRE_FALSE(spec.moe);
  REQUIRE_FALSE(spec.published_parameters);
}

TEST_CASE("which layers are MoE") {
  const ModelSpec spec = model(
      "layers: 6\nhidden: 64\nffn: 256\nheads: 4\nvocab: 1000\n"
      "moe: {experts: 4, top_k: 2, ffn: 32, first_dense_layers: 1, layer_freq: 2}\n");
  std::string pattern;
  for (std::int64_t i = 0; i < spec.layers; ++i) pattern += spec.layer_is_moe(i) ? 'm' : 'd';
  REQUIRE(pattern == "dmdmdm");
}

TEST_CASE("without dense layers ffn may be left to the experts, and theirs defaults to it") {
  REQUIRE(model("layers: 2\nhidden: 64\nheads: 4\nvocab: 1000\nmoe: {experts: 4, top_k: 2, ffn: 32}\n").ffn == 32);
  REQUIRE(model(kSmall + "moe: {experts: 4, top_k: 2}\n").moe->ffn == 256);
}

TEST_CASE("mistakes in a model file") {
  REQUIRE(model_error(kSmall + "hidden_sise: 4\n").starts_with("m.yaml:6:1: unknown key \"hidden_sise\""));
  REQUIRE(model_error(kSmall + "kv_head: 4\n") == "m.yaml:6:1: unknown key \"kv_head\"; did you mean \"kv_heads\"?");
  REQUIRE(model_error("layers: 2\n") == "m.yaml:1:1: the key \"hidden\" is missing; add it");
  REQUIRE(model_error("layers: 2\nhidden: 64\nheads: 4\nvocab: 1000\n") ==
          "m.yaml:1:1: the key \"ffn\" is missing; add it");
  REQUIRE(model_error("layers: 0\nhidden: 64\nffn: 256\nheads: 4\nvocab: 9\n") ==
          "m.yaml:1:9: \"layers\" is 0; use a whole number from 1 to 100000");
  REQUIRE(model_error("layers: -2\nhidden: 64\nffn: 256\nheads: 4\nvocab: 9\n") ==
          "m.yaml:1:9: \"layers\" is -2; use a whole number from 1 to 100000");
  REQUIRE(model_error("layers: two\nhidden: 64\nffn: 256\nheads: 4\nvocab: 9\n") ==
          "m.yaml:1:9: \"two\" is not a number; write it like 8");
  REQUIRE(model_error("layers: [2]\nhidden: 64\nffn: 256\nheads: 4\nvocab: 9\n") ==
          "m.yaml:1:9: \"layers\" must be a single value, found a list; write one value after the colon");
  REQUIRE(model_error("layers:\nhidden: 64\nffn: 256\nheads: 4\nvocab: 9\n") ==
          "m.yaml:1:1: \"layers\" must be a single value, found nothing; write one value after the colon");
  REQUIRE(model_error(kSmall + "gated: yes\n") == "m.yaml:6:8: \"gated\" cannot be \"yes\"; known values: true, false");
  REQUIRE(model_error(kSmall + "norm: rmsnrom\n") ==
          "m.yaml:6:7: \"norm\" cannot be \"rmsnrom\"; did you mean \"rmsnorm\"?");
  REQUIRE(model_error("[1, 2]") ==
          "m.yaml:1:1: this file must be a mapping, found a list; write `key: value` with keys like name");
}

TEST_CASE("sizes that do not fit each other") {
  REQUIRE(model_error(kSmall + "kv_heads: 3\n") ==
          "m.yaml:6:11: 4 heads do not divide into 3 kv_heads; each group of queries shares one: use a divisor of "
          "heads");
  REQUIRE(model_error("layers: 2\nhidden: 65\nffn: 256\nheads: 4\nvocab: 9\n") ==
          "m.yaml:4:8: hidden 65 does not divide into 4 heads; give head_dim, or change heads");
  REQUIRE(model_error(kSmall + "moe: {experts: 4, top_k: 5}\n") ==
          "m.yaml:6:26: top_k 5 is more than the 4 experts; a token goes to different experts: use at most their "
          "number");
  REQUIRE(model_error(kSmall + "moe: {experts: 4, top_k: 2, first_dense_layers: 2}\n")
              .starts_with("m.yaml:6:49: with first_dense_layers 2 none of the 2 layers is MoE"));
  REQUIRE(model_error(kSmall + "moe: {experts: 4, top_k: 2, shared_gate: true}\n")
              .starts_with("m.yaml:6:42: shared_gate needs a shared expert"));
  REQUIRE(model_error(kSmall + "mla: {q_lora_rank: 8}\n") ==
          "m.yaml:6:6: the key \"mla.kv_lora_rank\" is missing; add it");
  REQUIRE(model_error(kSmall + "kv_heads: 2\nmla: {kv_lora_rank: 8}\n").starts_with("m.yaml:6:11: latent attention"));
  REQUIRE(model_error(kSmall + "positions: learned\n") == "m.yaml:1:1: the key \"max_positions\" is missing; add it");
  REQUIRE(model_error(kSmall + "published_rounding: 10\n").starts_with("m.yaml:6:21: published_rounding says how"));
  REQUIRE(model_error("layers: 100000\nhidden: 1e9\nffn: 1e9\nheads: 1\nvocab: 1e9\n")
              .starts_with("m.yaml:1:1: this model would have more than 10^15 parameters"));
}
