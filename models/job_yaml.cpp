#include "models/job_yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "models/cluster_yaml.hpp"
#include "models/job_words.hpp"
#include "models/library.hpp"
#include "models/model_yaml.hpp"
#include "models/quantity_text.hpp"
#include "models/run_settings_yaml.hpp"
#include "models/text_file.hpp"
#include "models/yaml_fields.hpp"

namespace ebb {

namespace {

namespace fs = std::filesystem;

void read_optional(std::string_view key, const YamlFields& fields, std::optional<std::int64_t>& out) {
  if (fields.find(key) == nullptr) return;
  out = 1;
  fields.count(key, *out, 1, 100'000);
}

void read_optional(std::string_view key, const YamlFields& fields, std::optional<bool>& out) {
  if (fields.find(key) == nullptr) return;
  out = false;
  fields.boolean(key, *out);
}

Parallel read_parallel(const YamlFields& fields) {
  constexpr std::int64_t kMost = 1'000'000;
  Parallel parallel;
  fields.require("gpus");
  fields.count("gpus", parallel.gpus, 1, kMost);
  fields.count("tensor", parallel.tensor, 1, kMost);
  fields.count("pipeline", parallel.pipeline, 1, kMost);
  fields.count("virtual_pipeline", parallel.virtual_pipeline, 1, kMost);
  fields.count("context", parallel.context, 1, kMost);
  fields.count("expert", parallel.expert, 1, kMost);
  parallel.expert_tensor = parallel.tensor;  // as Megatron: --expert-tensor-parallel-size defaults to the other
  fields.count("expert_tensor", parallel.expert_tensor, 1, kMost);
  fields.count("optimizer_instances", parallel.optimizer_instances, 1, kMost);
  fields.boolean("sequence", parallel.sequence);
  fields.boolean("overlap_grad_reduce", parallel.overlap_grad_reduce);
  fields.boolean("overlap_param_gather", parallel.overlap_param_gather);
  fields.text("pipeline_layout", parallel.pipeline_layout);
  read_optional("first_stage_layers", fields, parallel.first_stage_layers);
  read_optional("last_stage_layers", fields, parallel.last_stage_layers);
  fields.boolean("account_for_embedding", parallel.account_for_embedding);
  fields.boolean("account_for_loss", parallel.account_for_loss);
  fields.count("micro_batch_group", parallel.micro_batch_group, 1, kMost);
  fields.boolean("gather_with_step", parallel.gather_with_step);
  fields.boolean("pipeline_inner", parallel.pipeline_inner);
  fields.boolean("pad_buckets", parallel.pad_buckets);
  if (const YamlNode* bucket = fields.find("bucket_numel")) {
    parallel.bucket_numel = parse_numel(fields.scalar("bucket_numel", *bucket), bucket->place);
    if (parallel.bucket_numel->value == 0)
      throw InputError(bucket->place, "a bucket of no elements", "use a positive number, or leave bucket_numel out");
  }
  return parallel;
}

Batch read_batch(const YamlFields& fields) {
  Batch batch;
  for (const char* key : {"global", "sequence"}) fields.require(key);
  fields.count("micro", batch.micro, 1, 1'000'000);
  fields.count("global", batch.global);
  fields.count("sequence", batch.sequence, 1, 100'000'000);
  return batch;
}

Precision read_precision(const YamlFields& fields) {
  Precision precision;
  fields.choice<Dtype>("params", precision.params, kParamTypes);
  fields.choice<Dtype>("grads", precision.grads, kGradTypes);
  fields.choice<Dtype>("exp_avg", precision.exp_avg, kMomentTypes);
  fields.choice<Dtype>("exp_avg_sq", precision.exp_avg_sq, kMomentTypes);
  fields.choice<Dtype>("master", precision.master, kMasterTypes);
  read_optional("precision_aware", fields, precision.precision_aware);
  read_optional("remainders", fields, precision.remainders);
  if (const auto fp4 = fields.nested("fp4", {"recipe", "param_gather"})) {
    fp4->choice<Fp4Recipe>("recipe", precision.fp4, kFp4Recipes);
    fp4->boolean("param_gather", precision.fp4_param_gather);
  }
  if (const auto fp8 = fields.nested("fp8", {"recipe", "param_gather", "columnwise", "reuse_grad_buffer",
                                             "first_bf16_layers", "last_bf16_layers"})) {
    fp8->choice<Fp8Recipe>("recipe", precision.fp8, kFp8Recipes);
    fp8->boolean("param_gather", precision.fp8_param_gather);
    fp8->choice<Columnwise>("columnwise", precision.fp8_columnwise, kColumnwise);
    read_optional("reuse_grad_buffer", *fp8, precision.fp8_reuse_grad_buffer);
    fp8->count("first_bf16_layers", precision.first_bf16_layers, 0, 100'000);
    fp8->count("last_bf16_layers", precision.last_bf16_layers, 0, 100'000);
    if (precision.fp8_param_gather && precision.fp8 == Fp8Recipe::none)
      throw InputError(fp8->place_of("param_gather"), "FP8 parameter gather needs an FP8 recipe",
                       "give precision.fp8.recipe, or leave param_gather out");
  }
  return precision;
}

Recompute read_recompute(const YamlFields& fields) {
  Recompute recompute;
  fields.choice<RecomputeGranularity>("granularity", recompute.granularity, kGranularities);
  const bool full = recompute.granularity == RecomputeGranularity::full;
  const bool selective = recompute.granularity == RecomputeGranularity::selective;
  for (const char* key : {"method", "layers"})
    if (fields.find(key) != nullptr && !full)
      throw InputError(fields.place_of(key), fmt::format("\"{}\" belongs to full recomputation", fields.full_name(key)),
                       "use granularity: full, or leave it out");
  if (fields.find("modules") != nullptr && !selective)
    throw InputError(fields.place_of("modules"), "\"recompute.modules\" belongs to selective recomputation",
                     "use granularity: selective, or leave it out");
  if (full) {
    recompute.method = "uniform";
    fields.choice<std::string>("method", recompute.method, kRecomputeMethods);
    fields.count("layers", recompute.layers, 1, 100'000);
  }
  if (selective) {
    recompute.modules = {"core_attn"};
    fields.words("modules", recompute.modules);
    for (std::size_t i = 0; i < recompute.modules.size(); ++i)
      if (std::find(std::begin(kRecomputeModules), std::end(kRecomputeModules), recompute.modules[i]) ==
          std::end(kRecomputeModules))
        throw InputError(fields.require("modules").entries[i].value.place,
                         fmt::format("unknown module \"{}\"", recompute.modules[i].substr(0, 40)),
                         did_you_mean(recompute.modules[i], kRecomputeModules, "modules"));
  }
  return recompute;
}

/// The key's node unless it is absent or says "auto".
const YamlNode* find_fixed(const YamlFields& fields, std::string_view key) {
  const YamlNode* node = fields.find(key);
  return node == nullptr || fields.scalar(key, *node) == "auto" ? nullptr : node;
}

void check_offload(const YamlFields& fields, const Offload& offload) {
  if (!offload.policy) return;
  const Policy policy = *offload.policy;
  const auto unused = [&](std::string_view key, bool used, const char* cure) {
    if (find_fixed(fields, key) != nullptr && !used)
      throw InputError(fields.place_of(key), fmt::format("the policy {} has no {}", name_of(policy), key), cure);
  };
  unused("chunk_numel", uses_chunk_numel(policy), "leave it out (windowed takes chunk_size_mb)");
  unused("chunk_size_mb", policy == Policy::windowed, "leave it out (chunked takes chunk_numel)");
  unused("fraction", policy == Policy::windowed || policy == Policy::cpu_adam, "leave it out");
  unused("slots", policy == Policy::pipelined, "leave it out (only pipelined has slots)");
  unused("cap", policy == Policy::tidal, "leave it out (only tidal has a cap; budget.device holds for every policy)");
}

Offload read_offload(const YamlFields& fields) {
  Offload offload;
  if (find_fixed(fields, "policy") != nullptr) {
    offload.policy.emplace();
    fields.choice<Policy>("policy", *offload.policy, policy_choices());
  }
  if (const YamlNode* node = find_fixed(fields, "chunk_numel")) {
    offload.chunk_numel = parse_numel(node->text, node->place);
    if (offload.chunk_numel->value == 0)
      throw InputError(node->place, "a chunk of no elements", "use a positive number (0 in Megatron is full-reload)");
  }
  if (find_fixed(fields, "chunk_size_mb") != nullptr) {
    offload.chunk_size_mb.emplace();
    fields.count("chunk_size_mb", *offload.chunk_size_mb, 0);
  }
  if (const YamlNode* node = find_fixed(fields, "fraction")) {
    offload.fraction = parse_ratio(node->text, node->place);
    if (!(*offload.fraction > 0 && *offload.fraction <= 1))
      throw InputError(node->place, fmt::format("the fraction is {}", node->text), "use more than 0 and at most 1");
  }
  if (find_fixed(fields, "slots") != nullptr) {
    std::int64_t slots = 0;
    fields.count("slots", slots, 1, 1024);
    offload.slots = static_cast<int>(slots);
  }
  if (const YamlNode* node = find_fixed(fields, "cap")) offload.cap = parse_bytes(node->text, node->place);
  check_offload(fields, offload);
  return offload;
}

Budget read_budget(const YamlFields& fields) {
  Budget budget;
  const auto read = [&](std::string_view key, std::optional<Bytes>& out) {
    if (const YamlNode* node = fields.find(key)) out = parse_bytes(fields.scalar(key, *node), node->place);
  };
  read("device", budget.device);
  read("host", budget.host);
  return budget;
}

Compute read_compute(const YamlFields& fields) {
  Compute compute;
  if (const YamlNode* node = fields.find("step_seconds")) {
    compute.step_seconds = parse_seconds(fields.scalar("step_seconds", *node), node->place);
    if (!(compute.step_seconds->value > 0))
      throw InputError(node->place, "a step of no time", "use a positive time, or leave step_seconds out");
  }
  fields.choice<Attention>("attention", compute.attention, kAttentions);
  fields.choice<AdamKernel>("adam", compute.adam, kAdamKernels);
  std::vector<std::string_view> policies;
  for (const Policy policy : kPolicies) policies.push_back(name_of(policy));
  if (const auto by_policy = fields.nested("adam_by_policy", policies))
    for (const Policy policy : kPolicies)
      if (by_policy->find(name_of(policy)) != nullptr)
        by_policy->choice<AdamKernel>(name_of(policy), compute.adam_by_policy[policy], kAdamKernels);
  return compute;
}

Measured read_measured(const YamlFields& fields) {
  Measured measured;
  const auto read = [&](std::string_view key, Bytes& out) {
    if (const YamlNode* node = fields.find(key)) out = parse_bytes(fields.scalar(key, *node), node->place);
  };
  read("resident_remainder", measured.resident_remainder);
  read("peak_remainder", measured.peak_remainder);
  return measured;
}

void collect_places(const YamlNode& node, const std::string& prefix, std::map<std::string, Place>& places) {
  for (const YamlEntry& entry : node.entries) {
    if (node.kind != YamlNode::Kind::map) return;
    const std::string name = prefix.empty() ? entry.key : prefix + "." + entry.key;
    // What is wrong with a key of one value is that value; a block is found by its key.
    places[name] = entry.value.kind == YamlNode::Kind::scalar ? entry.value.place : entry.key_place;
    collect_places(entry.value, name, places);
  }
}

}  // namespace

Job read_job(const YamlNode& node, const std::string& file) {
  std::vector<std::string_view> keys = {"model",     "cluster", "parallel", "batch",   "precision",
                                        "recompute", "offload", "budget",   "compute", "measured"};
  keys.insert(keys.end(), std::begin(kRunSettingKeys), std::end(kRunSettingKeys));
  const YamlFields fields(node, "", keys);
  Job job;
  job.file = file;
  job.name = fs::path(file).stem().string();
  const fs::path directory = fs::path(file).parent_path();
  for (const char* key : {"model", "cluster", "parallel", "batch"}) fields.require(key);

  const YamlNode& model = fields.require("model");
  if (model.kind == YamlNode::Kind::map)
    job.model = read_model(model, job.name, "model");
  else
    job.model = load_model(resolve(Library::models, fields.scalar("model", model), directory, model.place));
  const YamlNode& cluster = fields.require("cluster");
  if (cluster.kind == YamlNode::Kind::map)
    job.cluster = read_cluster(cluster, job.name, "cluster");
  else
    job.cluster = load_cluster(resolve(Library::clusters, fields.scalar("cluster", cluster), directory, cluster.place));

  job.parallel = read_parallel(*fields.nested("parallel", {"gpus",
                                                           "tensor",
                                                           "pipeline",
                                                           "virtual_pipeline",
                                                           "context",
                                                           "expert",
                                                           "expert_tensor",
                                                           "sequence",
                                                           "optimizer_instances",
                                                           "overlap_grad_reduce",
                                                           "overlap_param_gather",
                                                           "pipeline_layout",
                                                           "bucket_numel",
                                                           "first_stage_layers",
                                                           "last_stage_layers",
                                                           "account_for_embedding",
                                                           "account_for_loss",
                                                           "micro_batch_group",
                                                           "gather_with_step",
                                                           "pipeline_inner",
                                                           "pad_buckets"}));
  job.batch = read_batch(*fields.nested("batch", {"micro", "global", "sequence"}));
  if (const auto block = fields.nested("precision", {"params", "grads", "exp_avg", "exp_avg_sq", "master",
                                                     "precision_aware", "remainders", "fp8", "fp4"}))
    job.precision = read_precision(*block);
  if (const auto block = fields.nested("recompute", {"granularity", "method", "layers", "modules"}))
    job.recompute = read_recompute(*block);
  if (const auto block =
          fields.nested("offload", {"policy", "chunk_numel", "chunk_size_mb", "fraction", "slots", "cap"}))
    job.offload = read_offload(*block);
  if (const auto block = fields.nested("budget", {"device", "host"})) job.budget = read_budget(*block);
  if (const auto block = fields.nested("compute", {"step_seconds", "attention", "adam", "adam_by_policy"}))
    job.compute = read_compute(*block);
  if (const auto block = fields.nested("measured", {"resident_remainder", "peak_remainder"}))
    job.measured = read_measured(*block);
  read_run_settings(fields, job);
  collect_places(node, "", job.places);
  return job;
}

JobTree load_job_tree(const std::string& file) {
  const std::vector<std::string> names = library_names(Library::jobs);
  std::error_code error;
  if (!fs::exists(file, error) && std::find(names.begin(), names.end(), file) != names.end())
    return load_job_tree(library_path(Library::jobs, file).string());
  const std::string cure = did_you_mean(fs::path(file).stem().string(), names, "jobs in the library");
  return {file, parse_yaml(read_text_file(file, kMostYamlBytes, cure), file)};
}

Job load_job(const std::string& file) {
  const JobTree tree = load_job_tree(file);
  return read_job(tree.root, tree.file);
}

}  // namespace ebb
