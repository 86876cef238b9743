// Everything in the library loads, says where its figures come from, and survives being written and read again.
#include "models/library.hpp"

#include <algorithm>

#include "models/cluster_yaml.hpp"
#include "models/job_yaml.hpp"
#include "models/model_yaml.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

TEST_CASE("the promised models, clusters and jobs are there") {
  const auto models = library_names(Library::models);
  for (const char* name : {"llama3-8b", "llama3-70b", "llama3-405b", "llama3.2-1b", "qwen3-8b", "qwen3-30b-a3b",
                           "qwen3-235b-a22b", "mixtral-8x7b", "mixtral-8x22b", "deepseek-v2-lite", "deepseek-v3",
                           "gpt3-175b", "gpt-oss-120b", "nemotron4-15b", "megatron-1.8b"})
    REQUIRE(has(models, name));
  const auto clusters = library_names(Library::clusters);
  for (const char* name : {"hgx-h200", "h200-1gpu", "hgx-h100", "dgx-a100", "hgx-b200", "gb200-nvl72", "gh200",
                           "rtx4090-workstation", "rtxpro6000-workstation"})
    REQUIRE(has(clusters, name));
  REQUIRE(library_names(Library::jobs).size() >= 9);
}

TEST_CASE("models round-trip and name their source") {
  for (const std::string& name : library_names(Library::models)) {
    INFO(name);
    const ModelSpec model = load_model(library_path(Library::models, name));
    REQUIRE(model.name == name);
    REQUIRE(model.source.size() > 10);
    REQUIRE(model.published_parameters);
    REQUIRE(read_model(parse_yaml(write_model(model), name), "other") == model);
  }
}

TEST_CASE("clusters round-trip") {
  for (const std::string& name : library_names(Library::clusters)) {
    INFO(name);
    const Cluster cluster = load_cluster(library_path(Library::clusters, name));
    REQUIRE(cluster.name == name);
    REQUIRE(read_cluster(parse_yaml(write_cluster(cluster), name), "other") == cluster);
    // Copies of all GPUs together are no faster than each alone, and no slower than one alone.
    const HostLink& link = cluster.host_link;
    const auto gpus = static_cast<double>(cluster.gpus_per_host);
    REQUIRE(link.host_one_way.value.value <= gpus * std::max(link.h2d.value.value, link.d2h.value.value));
    double both = link.both.value.value;
    for (const SizedRate& size : link.both_by_size.value) both = std::max(both, size.rate.value);
    REQUIRE(link.host_both.value.value <= gpus * both);
    REQUIRE(link.host_both.value.value >= link.both.value.value);
    // Adam cannot beat a copy on the same memory.
    REQUIRE(cluster.gpu.adam.value.value <= cluster.gpu.hbm.value.value);
    REQUIRE(cluster.gpu.adam_foreach.value.value <= cluster.gpu.adam.value.value);
  }
}

TEST_CASE("jobs round-trip, divide their GPUs and fill whole hosts or part of one") {
  for (const std::string& name : library_names(Library::jobs)) {
    INFO(name);
    const Job job = load_job(library_path(Library::jobs, name).string());
    REQUIRE(job.name == name);
    const Job again = read_job(parse_yaml(write_job(job), "other.yaml"), "other.yaml");
    REQUIRE(again.model == job.model);
    REQUIRE(again.cluster == job.cluster);
    REQUIRE(again.parallel == job.parallel);
    REQUIRE(again.batch == job.batch);
    REQUIRE(again.precision == job.precision);
    REQUIRE(again.recompute == job.recompute);
    REQUIRE(again.offload == job.offload);
    REQUIRE(again.budget == job.budget);
    REQUIRE(again.compute == job.compute);
    REQUIRE(write_job(again) == write_job(job));

    const Parallel& parallel = job.parallel;
    REQUIRE(parallel.gpus % (parallel.tensor * parallel.context * parallel.pipeline) == 0);
    REQUIRE(parallel.gpus % (parallel.expert * parallel.expert_tensor * parallel.pipeline) == 0);
    const std::int64_t host = job.cluster.gpus_per_host;
    REQUIRE((parallel.gpus < host || parallel.gpus % host == 0));
    REQUIRE(job.batch.global % (job.batch.micro * parallel.data()) == 0);
    REQUIRE(job.model.heads % parallel.tensor == 0);
    if (parallel.pipeline_layout.empty())
      REQUIRE(job.model.layers % (parallel.pipeline * parallel.virtual_pipeline) == 0);
    if (job.model.moe) REQUIRE(job.model.moe->experts % parallel.expert == 0);
  }
}

TEST_CASE("a job with every optional key set round-trips") {
  Job job = load_job(library_path(Library::jobs, "deepseek-v3-2048xh200").string());
  job.model.source = "quotes \" and \\ and a tab\tand: a colon # and caf\xc3\xa9";
  job.parallel.bucket_numel = Numel{40'000'000};
  job.precision.fp8 = Fp8Recipe::mxfp8;
  job.precision.fp8_param_gather = true;
  job.recompute = {.granularity = RecomputeGranularity::full, .method = "block", .layers = 2, .modules = {}};
  job.offload = {.policy = Policy::windowed, .chunk_size_mb = 512, .fraction = 0.3};
  job.budget = {.device = Bytes{123456789}, .host = 1_GiB};
  job.compute.step_seconds = Seconds{1.0 / 3};
  job.compute.adam_by_policy = {{Policy::windowed, AdamKernel::foreach}, {Policy::cpu_adam, AdamKernel::fused}};
  const Job again = read_job(parse_yaml(write_job(job), "j.yaml"), "j.yaml");
  REQUIRE(again.model == job.model);
  REQUIRE(again.parallel == job.parallel);
  REQUIRE(again.precision == job.precision);
  REQUIRE(again.recompute == job.recompute);
  REQUIRE(again.offload == job.offload);
  REQUIRE(again.budget == job.budget);
  REQUIRE(again.compute == job.compute);
}

TEST_CASE("the measured job is the one that was measured") {
  const Job job = load_job(library_path(Library::jobs, "measured-1.8b-1xh200").string());
  REQUIRE(job.model.layers == 24);
  REQUIRE(job.model.hidden == 2048);
  REQUIRE(job.model.ffn == 8192);
  REQUIRE(job.model.heads == 16);
  REQUIRE(job.model.vocab == 50256);
  REQUIRE_FALSE(job.parallel.overlap_grad_reduce);
  REQUIRE(job.batch.micro == 1);
  REQUIRE(job.batch.global == 4);
  REQUIRE(job.batch.sequence == 2048);
  REQUIRE(job.compute.attention == Attention::local);
  REQUIRE(job.adam_of(Policy::chunked) == AdamKernel::fused);
  REQUIRE(job.adam_of(Policy::windowed) == AdamKernel::foreach);
}
