// Schemas of the answers of `ebb models|clusters|policies`, `list` and `show`. Which figures a cluster has comes from
// cluster_figures.hpp, the list that readers and writers walk. These are facts, in bytes and seconds; the files that
// hold them have schemas of their own (models/schema).
#include <utility>

#include "models/cluster_figures.hpp"
#include "models/job_words.hpp"
#include "reports/schema_parts.hpp"

namespace ebb::reports::schema {

namespace {

Field name() { return {"name", text("In the library, or the file's."), required}; }

Json model() {
  return object(
      "",
      {name(),
       {"parameters", integer("All of them, counted."), required},
       {"published_parameters", integer("As its makers say.")},
       {"kind", text("Dense or experts, in words."), required},
       {"layers", integer("Transformer layers."), required},
       {"hidden", integer("Hidden size."), required},
       {"ffn", integer("Of a dense feed-forward layer.")},
       {"heads", integer("Attention heads."), required},
       {"kv_heads", integer("Heads of keys and values."), required},
       {"head_dim", integer("Size of a head."), required},
       {"vocab", integer("Tokens."), required},
       {"tied_embeddings", boolean("Input and output share theirs."), required},
       {"moe", object("Mixture of experts.", {{"experts", integer("Of a layer."), required},
                                              {"top_k", integer("Experts of a token."), required},
                                              {"ffn", integer("Of an expert."), required},
                                              {"shared_ffn", integer("Of the shared experts; 0: none."), required},
                                              {"first_dense_layers", integer("Layers without experts."), required}})},
       {"mla", object("Latent attention.", {{"q_lora_rank", integer("Of queries; 0: none."), required},
                                            {"kv_lora_rank", integer("Of keys and values."), required}})},
       {"mtp", object("Multi-token prediction.", {{"layers", integer("So many."), required}})},
       {"source", text("Where this is from.")}});
}

Json value_of(const Bytes&, std::string_view description) { return bytes(description); }
/// null: no limit.
Json value_of(const BytesPerSecond&, std::string_view description) { return nullable(number(description)); }
Json value_of(const FlopsPerSecond&, std::string_view description) { return nullable(number(description)); }
Json value_of(const Seconds&, std::string_view description) { return seconds(description); }
Json value_of(const double&, std::string_view description) { return number(description); }
Json value_of(const std::vector<SizedRate>&, std::string_view description) { return texts(description); }

/// `plain`: what is no figure.
template <class Block>
Field block(const char* name, const char* description, std::vector<Field> plain = {}) {
  const auto add = [&](const char* key, const auto& figure) {
    const std::string_view meaning = figure_description(name, key);
    plain.push_back({key,
                     object(meaning, {{"value", value_of(figure.value, meaning), required},
                                      {"source", text("Where that comes from."), required}}),
                     required});
  };
  const Block figures;
  for_each(figures, add);
  for_each_optional(figures, add);
  return {name, object(description, plain), required};
}

Json cluster() {
  return object("Rates are per second.",
                {name(),
                 {"gpus_per_host", integer("GPUs of a host."), required},
                 block<Gpu>("gpu", "One GPU.", {{"name", text("What the driver calls it."), required}}),
                 block<HostLink>("host_link", "A GPU's link to host memory."),
                 block<Topology>("topology", "What lies between the links and host memory.",
                                 {{"gpus_per_switch", integer("GPUs behind one PCIe switch."), required}}),
                 block<Host>("host", "CPUs and memory.", {{"sockets", integer("CPU sockets of a host."), required}}),
                 block<Calls>("calls", "What calls cost the CPU thread of a rank."),
                 block<Interconnect>("interconnect", "NVLink and network.",
                                     {{"nvlink_domain", integer("GPUs that reach each other over NVLink."), required}}),
                 block<Storage>("storage", "What checkpoints are written to and read from."),
                 {"measured_figures", text("How many figures were measured: \"20 of 30\"."), required}});
}

Json policy() {
  return object("", {{"name", choice("Which.", policy_choices()), required},
                     {"moves", text("What leaves the device."), required},
                     {"when", text("And when."), required},
                     {"options", text("Ebb's options that shape it."), required},
                     {"flags", texts("Megatron's flags as people begin with them."), required},
                     {"requires", text("Which Megatron takes them; empty: any."), required},
                     {"taken_by", text("The same in words."), required},
                     {"documentation", text("Where there is more."), required}});
}

Json of_one(const char* key, const char* description, Json entry) {
  return answer(key, description, {{key, std::move(entry), required}, ebb_version()});
}

Json of_all(const char* key, const char* description, Json entry) {
  return answer(key, description, {{key, list("All of the library.", std::move(entry)), required}, ebb_version()});
}

}  // namespace

Json models_answer() { return of_all("models", "ebb models list.", model()); }
Json model_answer() { return of_one("model", "ebb models show.", model()); }
Json clusters_answer() { return of_all("clusters", "ebb clusters list.", cluster()); }
Json cluster_answer() { return of_one("cluster", "ebb clusters show.", cluster()); }
Json policies_answer() { return of_all("policies", "ebb policies list.", policy()); }
Json policy_answer() { return of_one("policy", "ebb policies show.", policy()); }

}  // namespace ebb::reports::schema
