// job_of: Megatron-LM's arguments and defaults become the job that Megatron would run. The expected figures were worked
// out by hand from the argument lists and Megatron-LM's argument parser.
#include <fmt/format.h>

#include <string>

#include "models/cluster_yaml.hpp"
#include "models/job_yaml.hpp"
#include "models/library.hpp"
#include "planner/constraints.hpp"
#include "planner/megatron_arguments.hpp"
#include "tests/catch.hpp"
#include "tests/planner/recorded_arguments.hpp"

using namespace ebb;

namespace {

const Cluster& h100() {
  static const Cluster cluster = load_cluster(library_path(Library::clusters, "hgx-h100"));
  return cluster;
}

ImportedJob recorded(const std::string& id) {
  for (const auto& one : test::recorded_cases())
    if (one.at("id") == id) return job_of(test::arguments_of(one), h100());
  FAIL("no case " + id);
  return {};
}

const ImportNote* note_on(const ImportedJob& imported, const std::string& argument) {
  for (const ImportNote& note : imported.notes)
    if (note.argument == argument) return &note;
  return nullptr;
}

/// The least that Megatron takes, and `more`: words of one argument list.
MegatronArguments small(std::vector<std::vector<std::string>> more = {}, std::int64_t gpus = 8) {
  MegatronArguments result;
  result.file = "train.sh";
  result.gpus = gpus;
  std::vector<std::vector<std::string>> all = {{"num-layers", "4"},
                                               {"hidden-size", "256"},
                                               {"num-attention-heads", "4"},
                                               {"seq-length", "128"},
                                               {"max-position-embeddings", "512"},
                                               {"micro-batch-size", "2"}};
  all.insert(all.end(), more.begin(), more.end());
  int line = 0;
  for (const auto& words : all)
    result.arguments.push_back({words[0], {words.begin() + 1, words.end()}, {"train.sh", ++line, 1}});
  return result;
}

Job job_with(std::vector<std::vector<std::string>> more, std::int64_t gpus = 8) {
  return job_of(small(std::move(more), gpus), h100()).job;
}

std::string error_with(std::vector<std::vector<std::string>> more) {
  try {
    job_with(std::move(more));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every recorded configuration is imported, and no argument of it is unknown") {
  int cases = 0;
  for (const auto& one : test::recorded_cases()) {
    INFO(one.at("id"));
    const ImportedJob imported = job_of(test::arguments_of(one), h100());
    ++cases;
    for (const ImportNote& note : imported.notes) {
      INFO(note.argument << ": " << note.text);
      REQUIRE(note.text.find("not known") == std::string::npos);
      REQUIRE(note.text.find("not an argument") == std::string::npos);
    }
    const std::string text = write_job(imported.job);
    Job again = read_job(parse_yaml(text, "job.yaml"), "job.yaml");
    again.name = imported.job.name;
    again.file = imported.job.file;
    REQUIRE(write_job(again) == text);
    REQUIRE(again.model == imported.job.model);
    REQUIRE(again.parallel == imported.job.parallel);
    REQUIRE(again.precision == imported.job.precision);
  }
  REQUIRE(cases == 59);
}

TEST_CASE("Megatron's defaults") {
  const ImportedJob imported = job_of(small(), h100());
  const Job& job = imported.job;
  REQUIRE(job.model.positions == Positions::learned);
  REQUIRE(job.model.max_positions == 512);
  REQUIRE(job.model.ffn == 1024);
  REQUIRE(job.model.norm == Norm::layernorm);
  REQUIRE(job.model.bias);
  REQUIRE(job.model.tied_embeddings);
  REQUIRE_FALSE(job.model.gated);
  REQUIRE(job.model.vocab == 50257);
  REQUIRE(note_on(imported, "vocab-size")->kind == ImportNoteKind::assumed);
  REQUIRE_FALSE(job.optimizer.distributed);
  REQUIRE_FALSE(job.parallel.overlap_grad_reduce);
  REQUIRE_FALSE(job.parallel.overlap_param_gather);
  REQUIRE(job.activations.attention_dropout == 0.1);
  REQUIRE(job.activations.hidden_dropout == 0.1);
  REQUIRE(job.activations.loader_mask);
  REQUIRE(job.activations.cross_entropy == CrossEntropy::unfused);
  REQUIRE(job.experts.dispatcher == Dispatcher::allgather);
  REQUIRE_FALSE(job.experts.grouped_matmul);
  REQUIRE(job.precision.params == Dtype::fp32);
  REQUIRE(job.compute.attention == Attention::unfused);  // flash kernels take half precision
  REQUIRE(job.batch.global == 2 * 8);                    // one micro-batch of 2 on 8 replicas
  REQUIRE(job.checkpoint.start == Start::fresh);
  REQUIRE_FALSE(job.offload.policy);
}

TEST_CASE("a recorded configuration with latent attention, experts, prediction layers and a pipeline layout") {
  const Job job = recorded("mixtral/deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release").job;
  REQUIRE(job.model.layers == 14);
  REQUIRE(job.model.hidden == 7168);
  REQUIRE(job.model.moe->experts == 64);
  REQUIRE(job.model.moe->first_dense_layers == 3);
  REQUIRE(job.model.mla->q_lora_rank == 1536);
  REQUIRE(job.model.mla->kv_lora_rank == 512);
  REQUIRE(job.model.mtp->layers == 1);
  REQUIRE(job.parallel.pipeline == 4);
  REQUIRE(job.parallel.virtual_pipeline == 2);  // 8 stages in the layout
  REQUIRE(job.parallel.expert_tensor == 1);
  REQUIRE(job.experts.dispatcher == Dispatcher::flex);
  REQUIRE(job.megatron.expandable_segments);
}

TEST_CASE("values that Megatron would not take are errors at their place") {
  REQUIRE(
      error_with({{"moe-layer-freq", "[1,1]"}, {"num-experts", "4"}}).starts_with("train.sh:7:1: --moe-layer-freq"));
  REQUIRE(error_with({{"optimizer", "adamw"}}).starts_with("train.sh:7:1: --optimizer: unknown value \"adamw\""));
}
