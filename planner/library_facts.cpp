#include "planner/library_facts.hpp"

#include <fmt/format.h>

#include <cmath>

#include "models/cluster_figures.hpp"
#include "models/quantity_text.hpp"
#include "planner/flags.hpp"
#include "planner/parameters.hpp"

namespace ebb {

namespace {

using reports::Fact;
using reports::LibraryEntry;

Fact fact(std::string key, std::int64_t value) { return {std::move(key), value, std::to_string(value), ""}; }
Fact fact(std::string key, const std::string& text) { return {std::move(key), text, text, ""}; }
Fact yes_or_no(std::string key, bool value) { return {std::move(key), value, value ? "yes" : "no", ""}; }

/// "dense", "128 experts, 8 a token".
std::string kind_of(const ModelSpec& model) {
  std::string kind = model.moe ? fmt::format("{} experts, {} a token", model.moe->experts, model.moe->top_k) : "dense";
  if (model.mla) kind += ", latent attention";
  if (model.mtp_layers() > 0) kind += ", predicts more tokens";
  return kind;
}

/// A figure's value: for JSON and for people.
Fact figure_of(std::string key, double value, std::string text, const std::string& source) {
  Fact f{std::move(key), value, std::move(text), source};
  if (std::isinf(value)) {
    f.value = nullptr;
    f.text = "no limit";
  }
  return f;
}
Fact figure(std::string key, const Sourced<Bytes>& f) {
  return {std::move(key), f.value.value, format_bytes(f.value), f.source};
}
Fact figure(std::string key, const Sourced<BytesPerSecond>& f) {
  return figure_of(std::move(key), f.value.value, format_bandwidth(f.value), f.source);
}
Fact figure(std::string key, const Sourced<FlopsPerSecond>& f) {
  std::string text = exact_text(f.value);
  if (const std::size_t unit = text.find_first_of("PTG"); unit != std::string::npos) text.insert(unit, " ");
  return figure_of(std::move(key), f.value.value, std::move(text), f.source);
}
Fact figure(std::string key, const Sourced<Seconds>& f) {
  return figure_of(std::move(key), f.value.value, format_seconds(f.value), f.source);
}
Fact figure(std::string key, const Sourced<double>& f) {
  return figure_of(std::move(key), f.value, exact_text(f.value), f.source);
}
Fact figure(std::string key, const Sourced<std::vector<SizedRate>>& f) {
  std::vector<std::string> points;
  std::string text;
  for (const SizedRate& point : f.value) {
    points.push_back(fmt::format("{}: {}", exact_text(point.bytes), exact_text(point.rate)));
    text += (text.empty() ? "" : ", ") + points.back();
  }
  return {std::move(key), points, text.empty() ? "as both" : text, f.source};
}

template <class Block>
void add(const char* name, const Block& block, LibraryEntry& entry) {
  const auto add_one = [&](const char* key, const auto& f) {
    entry.facts.push_back(figure(fmt::format("{}.{}", name, key), f));
  };
  for_each(block, add_one);
  for_each_optional(block, add_one);
}

/// How many of a cluster's figures were measured.
Fact basis_of(const LibraryEntry& entry) {
  std::int64_t measured = 0, all = 0;
  for (const Fact& f : entry.facts) {
    if (f.source.empty() || f.source.starts_with("default")) continue;
    ++all;
    if (f.source.starts_with("measured")) ++measured;
  }
  return fact("measured_figures", fmt::format("{} of {}", measured, all));
}

struct PolicyWords {
  const char* moves;
  const char* when;
};

PolicyWords words_of(Policy policy) {
  switch (policy) {
    case Policy::resident:
      return {"nothing", "never"};
    case Policy::full_reload:
      return {"moments and masters, all of them at once",
              "out after the step; in while gradients are finalized, before the next step"};
    case Policy::chunked:
      return {"moments and masters, in chunks of whole shards of up to N elements",
              "during the step, one after the other: in, Adam, out, and the host waits"};
    case Policy::windowed:
      return {"moments in two slots, chunks by size; masters in one window; a fraction may stay",
              "during the step: a chunk comes in while the one before is computed"};
    case Policy::cpu_adam:
      return {"gradients out, parameters in; a fraction's state stays on the host, with Adam", "during the step"};
    case Policy::pipelined:
      return {"moments and masters, D slots of exactly C elements, one copy each way a chunk",
              "during the step, both directions of the link at once, without waits of the host"};
    case Policy::tidal:
      return {"moments and masters, pieces of exactly C elements, as many as fit below a cap",
              "in while backward frees activations, out while the next forward needs their room; the rest in the step"};
  }
  return {"", ""};
}

/// A candidate as people begin with it, for the flags.
Candidate usual(Policy policy) {
  Candidate candidate{.policy = policy};
  if (policy == Policy::chunked) candidate.chunk_numel = {1'000'000'000};
  if (policy == Policy::windowed) candidate.chunk_size_mb = 128;
  return candidate;
}

std::string options_of(Policy policy) {
  switch (policy) {
    case Policy::resident:
    case Policy::full_reload:
      return "none";
    case Policy::chunked:
      return "--chunk-numel N";
    case Policy::windowed:
      return "--chunk-size-mb M (0: all in one window), --fraction F";
    case Policy::cpu_adam:
      return "--fraction F";
    case Policy::pipelined:
      return "--chunk-numel C, --slots D";
    case Policy::tidal:
      return "--chunk-numel C, --cap BYTES";
  }
  return "";
}

}  // namespace

LibraryEntry facts_of(const ModelSpec& model) {
  LibraryEntry entry{model.name, {}};
  std::vector<Fact>& facts = entry.facts;
  const Numel parameters = total_parameters(model);
  facts.push_back({"parameters", parameters.value, format_numel(parameters), ""});
  if (model.published_parameters) {
    std::string text = format_numel({*model.published_parameters});
    if (model.published_rounding > 0) text += fmt::format(", rounded to {}", format_numel({model.published_rounding}));
    facts.push_back({"published_parameters", *model.published_parameters, text, ""});
  }
  facts.push_back(fact("kind", kind_of(model)));
  facts.push_back(fact("layers", model.layers));
  facts.push_back(fact("hidden", model.hidden));
  if (model.ffn > 0) facts.push_back(fact("ffn", model.ffn));
  facts.push_back(fact("heads", model.heads));
  facts.push_back(fact("kv_heads", model.kv_heads));
  facts.push_back(fact("head_dim", model.head_dim));
  facts.push_back(fact("vocab", model.vocab));
  facts.push_back(yes_or_no("tied_embeddings", model.tied_embeddings));
  if (model.moe) {
    facts.push_back(fact("moe.experts", model.moe->experts));
    facts.push_back(fact("moe.top_k", model.moe->top_k));
    facts.push_back(fact("moe.ffn", model.moe->ffn));
    facts.push_back(fact("moe.shared_ffn", model.moe->shared_ffn));
    facts.push_back(fact("moe.first_dense_layers", model.moe->first_dense_layers));
  }
  if (model.mla) {
    facts.push_back(fact("mla.q_lora_rank", model.mla->q_lora_rank));
    facts.push_back(fact("mla.kv_lora_rank", model.mla->kv_lora_rank));
  }
  if (model.mtp_layers() > 0) facts.push_back(fact("mtp.layers", model.mtp_layers()));
  if (!model.source.empty()) facts.push_back(fact("source", model.source));
  return entry;
}

LibraryEntry facts_of(const Cluster& cluster) {
  LibraryEntry entry{cluster.name, {}};
  entry.facts.push_back(fact("gpus_per_host", cluster.gpus_per_host));
  entry.facts.push_back(fact("gpu.name", cluster.gpu.name));
  add("gpu", cluster.gpu, entry);
  add("host_link", cluster.host_link, entry);
  entry.facts.push_back(fact("topology.gpus_per_switch", cluster.topology.gpus_per_switch));
  add("topology", cluster.topology, entry);
  entry.facts.push_back(fact("host.sockets", cluster.host.sockets));
  add("host", cluster.host, entry);
  add("calls", cluster.calls, entry);
  entry.facts.push_back(fact("interconnect.nvlink_domain", cluster.interconnect.nvlink_domain));
  add("interconnect", cluster.interconnect, entry);
  add("storage", cluster.storage, entry);
  entry.facts.push_back(basis_of(entry));
  return entry;
}

LibraryEntry facts_of(Policy policy) {
  LibraryEntry entry{std::string(name_of(policy)), {}};
  const PolicyWords words = words_of(policy);
  entry.facts.push_back(fact("moves", words.moves));
  entry.facts.push_back(fact("when", words.when));
  entry.facts.push_back(fact("options", options_of(policy)));
  const std::vector<std::string> flags = flags_of(usual(policy));
  std::string pasted;
  for (const std::string& flag : flags) pasted += (pasted.empty() ? "" : " ") + flag;
  if (pasted.empty()) pasted = policy == Policy::resident ? "no flag" : "no flag of Megatron-LM";
  entry.facts.push_back({"flags", flags, pasted, ""});
  entry.facts.push_back(fact("requires", std::string(requirement_of(policy))));
  if (entry.facts.back().text.empty()) entry.facts.back().text = "any";
  entry.facts.push_back(fact("taken_by", takers_of(policy)));
  entry.facts.push_back(fact("documentation", "docs/jobs.md, \"offload, budget, compute\""));
  return entry;
}

}  // namespace ebb
