// The schema of a model (models/model_yaml.cpp reads it).
#include "models/model_spec.hpp"
#include "models/schema/schema_parts.hpp"

namespace ebb::schema {

namespace {

Json mla_schema() {
  return object("Multi-head latent attention (DeepSeek-V2, V3).",
                {{"q_lora_rank", yaml_count("Rank of the query's low-rank projection; 0: one direct projection.", 0)},
                 {"kv_lora_rank", yaml_count("Rank of the latent of keys and values."), required},
                 {"qk_head_dim", yaml_count("Query and key size of a head without the rotary part (128).")},
                 {"qk_rope_head_dim", yaml_count("The rotary part of it (64).")},
                 {"v_head_dim", yaml_count("Value size of a head (128).")}});
}

Json moe_schema() {
  return object("Mixture of experts.",
                {{"experts", yaml_count("Routed experts of a layer."), required},
                 {"top_k", yaml_count("Experts that a token goes to."), required},
                 {"ffn", yaml_count("Intermediate size of one expert (default: the model's ffn).")},
                 {"shared_ffn", yaml_count("Intermediate size of the shared experts together; 0: none.", 0)},
                 {"shared_gate", boolean("A [1, hidden] gate on the shared expert (Qwen2-MoE).")},
                 {"latent", yaml_count("Latent size of routed experts; 0: they work on hidden.", 0)},
                 {"first_dense_layers", yaml_count("So many first layers are dense.", 0)},
                 {"layer_freq", yaml_count("After those, every so manyth layer is MoE (1).")},
                 {"layer_pattern", yaml_text("A character a layer, 1 for MoE and 0 for dense, where the two numbers "
                                             "cannot say it.")}});
}

Json mtp_schema() {
  return object("Multi-token prediction.", {{"layers", yaml_count("Extra transformer layers.", 1, 100), required}});
}

/// Where layers are dense, and where experts do not say their own size, the model has to.
Json dense_size_rule() {
  const Json all_are_moe = {{"first_dense_layers", {{"enum", {0}}}},
                            {"layer_freq", {{"enum", {1}}}},
                            {"layer_pattern", {{"pattern", "^1*$"}}}};
  const Json experts_say_it = {{"required", {"moe"}},
                               {"properties", {{"moe", {{"required", {"ffn"}}, {"properties", all_are_moe}}}}}};
  return {{"anyOf", Json::array({{{"required", {"ffn"}}}, experts_say_it})}};
}

/// A learned embedding has so many rows.
Json positions_rule() {
  const Json learned = {{"required", {"positions"}}, {"properties", {{"positions", {{"const", "learned"}}}}}};
  return {{"anyOf", Json::array({{{"required", {"max_positions"}}}, {{"not", learned}}})}};
}

}  // namespace

Json model_schema() {
  Json schema = object(
      "A transformer, as far as its parameters, activations and FLOPs need it.",
      {{"name", yaml_text("Name in answers (default: the file's).")},
       {"layers", yaml_count("Transformer layers, without those of multi-token prediction.", 1, 100'000), required},
       {"hidden", yaml_count("Size of the residual stream."), required},
       {"ffn", yaml_count("Intermediate size of dense layers.")},
       {"heads", yaml_count("Attention heads."), required},
       {"kv_heads", yaml_count("Groups of queries that share keys and values (default: heads).")},
       {"head_dim", yaml_count("Size of a head (default: hidden / heads).")},
       {"vocab", yaml_count("Vocabulary as published, before padding."), required},
       {"positions", one_of_words("Position embedding (rope).", {"rope", "learned", "none"})},
       {"max_positions", yaml_count("Rows of a learned position embedding.", 0)},
       {"gated", boolean("SwiGLU-like: the first feed-forward matrix has two halves (true).")},
       {"tied_embeddings", boolean("The output layer is the embedding (false).")},
       {"norm", one_of_words("Kind of norm (rmsnorm).", {"rmsnorm", "layernorm"})},
       {"bias", boolean("Biases on all linear layers (false).")},
       {"qkv_bias", boolean("Bias on the QKV projection alone (false).")},
       {"router_bias", boolean("A trained router bias although bias is false.")},
       {"qk_norm", boolean("Norms of queries and keys for each head (false).")},
       {"attention_sinks", boolean("One learned softmax offset a head (gpt-oss).")},
       {"mla", mla_schema()},
       {"moe", moe_schema()},
       {"mtp", mtp_schema()},
       {"source", yaml_text("Where the figures come from.")},
       {"published_parameters",
        yaml_count("The publisher's total, without padding of the vocabulary and without MTP.", 1, kMostParameters)},
       {"published_rounding", yaml_count("... is known to within plus or minus this; 0: exact.", 0, kMostParameters)},
       {"vocab_divisible_by", yaml_count("Megatron's --make-vocab-size-divisible-by (128).")}});
  schema["allOf"] = Json::array({dense_size_rule(), positions_rule()});
  return schema;
}

std::string model_document() { return document("model", 1, "Model of Ebb", model_schema()); }

}  // namespace ebb::schema
