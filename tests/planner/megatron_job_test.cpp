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

TEST_CASE("recorded configurations, fact by fact") {
  const Job seven = recorded("gpt/gpt3_7b_tp1_pp4_memory_speed").job;
  REQUIRE(seven.model.vocab == 131'074);  // NullTokenizer of 131,073
  REQUIRE(seven.parallel.virtual_pipeline == 8);
  REQUIRE(seven.model.kv_heads == 8);
  REQUIRE_FALSE(seven.model.gated);  // squared ReLU

  const Job layers = recorded("gpt/gpt3_mcore_te_tp1_pp4_vp1_resume_torch_dist").job;
  REQUIRE(layers.parallel.virtual_pipeline == 3);  // 12 layers, 4 ranks, 1 a stage
  REQUIRE(layers.model.positions == Positions::learned);
  REQUIRE(layers.activations.deterministic);

  const Job uneven = recorded("gpt/gpt3_mcore_te_tp1_pp4_vp1_uneven_pipeline").job;
  REQUIRE(uneven.parallel.first_stage_layers == 2);
  REQUIRE(uneven.parallel.last_stage_layers == 2);

  const Job inner = recorded("gpt/gpt3_mcore_te_tp2_pp2_cp2_etp4_dp_last").job;
  REQUIRE(inner.parallel.pipeline_inner);
  REQUIRE(inner.parallel.expert_tensor == 4);

  const Job muon = recorded("moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_muon").job;
  REQUIRE(muon.optimizer.kind == OptimizerKind::muon);
  REQUIRE(muon.optimizer.layer_wise);
  REQUIRE_FALSE(recorded("moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_muon").job.optimizer.layer_wise);

  const ImportedJob fp8 = recorded("gpt/gpt3_weekly_mcore_tp2_pp2_current_scaling_native_fp8_tp_pp_sp_tp_overlap");
  REQUIRE(fp8.job.precision.fp8 == Fp8Recipe::tensorwise);
  REQUIRE(fp8.job.precision.fp8_param_gather);
  REQUIRE(fp8.job.megatron.tensor_overlap);
  REQUIRE(note_on(fp8, "lr") != nullptr);
  REQUIRE(note_on(fp8, "lr")->kind == ImportNoteKind::ignored);

  REQUIRE(recorded("gpt/gpt3_mcore_tp1_pp2").job.compute.attention == Attention::local);
  REQUIRE(recorded("moe/gpt3_mcore_te_tp2_zp_z3_resume_torch_dist_te_8experts2parallel_top2router").job.megatron.fsdp);
}

TEST_CASE("where Megatron's rules depend on other arguments") {
  REQUIRE(job_with({{"swiglu"}}).model.ffn == 640);  // 4 x 256 x 2/3 in multiples of 64
  REQUIRE(job_with({{"tensor-model-parallel-size", "2"}}).parallel.expert_tensor == 2);
  REQUIRE(job_with({{"tensor-model-parallel-size", "2"}, {"sequence-parallel"}}).parallel.sequence);
  REQUIRE_FALSE(job_with({{"sequence-parallel"}}).parallel.sequence);
  REQUIRE(job_with({{"bf16"}}).precision.grads == Dtype::fp32);
  REQUIRE(job_with({{"fp16"}}).precision.grads == Dtype::fp16);
  REQUIRE(job_with({{"fp16"}, {"accumulate-allreduce-grads-in-fp32"}}).precision.grads == Dtype::fp32);
  REQUIRE(job_with({{"bf16"}, {"attention-backend", "unfused"}}).compute.attention == Attention::unfused);
  REQUIRE(job_with({{"bf16"}, {"transformer-impl", "local"}}).compute.attention == Attention::local);
  REQUIRE(job_with({{"group-query-attention"}}).model.kv_heads == 1);
  REQUIRE(job_with({{"num-experts", "4"}, {"moe-layer-freq", "2"}}).model.moe->layer_freq == 2);
  const ModelSpec pattern = job_with({{"num-experts", "4"}, {"moe-layer-freq", "([1]*2+[0]+[1])"}}).model;
  REQUIRE(pattern.moe->layer_pattern == "1101");
  REQUIRE_FALSE(pattern.layer_is_moe(2));
  REQUIRE_FALSE(job_with({{"num-experts", "4"}, {"moe-layer-freq", "[0]*4"}}).model.moe);
  REQUIRE(job_with({{"step-batch-size-schedule", "0:384 200B:768"}}).batch.global == 384);
  REQUIRE(job_with({{"fp8-format", "hybrid"}}).precision.fp8 == Fp8Recipe::delayed);
  REQUIRE(job_with({{"fp8-recipe", "mxfp8"}}).precision.fp8 == Fp8Recipe::none);  // without a format
  REQUIRE(job_with({{"recompute-activations"}}).recompute.modules == std::vector<std::string>{"core_attn"});
  REQUIRE(job_with({{"load", "x"}}).checkpoint.start == Start::resume);
  REQUIRE(job_with({{"load", "x"}, {"finetune"}, {"no-load-optim"}}).checkpoint.start == Start::finetune);
  REQUIRE(job_with({{"cuda-graph-impl", "local"}, {"cuda-graph-scope", "full_iteration"}}).megatron.cuda_graphs ==
          CudaGraphs::full_iteration);
  // Two buckets of the 4-layer model: embeddings 50,257 x 256 and 512 x 256; a layer has 4 x 256 x 256 + 1,024
  // (attention)
  // + 8 x 256 x 256 + 1,280 (feed-forward) + 4 x 256 (norms); 512 behind.
  const std::int64_t numel = (50'304 + 512) * 256 + 4 * (12 * 65'536 + 1'024 + 1'280 + 1'024) + 512;
  REQUIRE(job_with({{"bf16"}, {"ddp-num-buckets", "2"}}).parallel.bucket_numel == Numel{numel / 2});
}

TEST_CASE("the flags of every offloading variant") {
  const auto offload = [](std::vector<std::vector<std::string>> flags) { return job_with(std::move(flags)).offload; };
  REQUIRE(offload({{"offload-optimizer-states"}}).policy == Policy::full_reload);
  const Offload chunked = offload({{"offload-optimizer-states"}, {"offload-optimizer-states-chunk-numel", "1000000"}});
  REQUIRE(chunked.policy == Policy::chunked);
  REQUIRE(chunked.chunk_numel == Numel{1'000'000});
  const Offload windowed = offload({{"chunked-optimizer-state-offload"}, {"optimizer-state-offload-fraction", "0.5"}});
  REQUIRE(windowed.policy == Policy::windowed);
  REQUIRE(windowed.chunk_size_mb == 0);
  REQUIRE(windowed.fraction == 0.5);
  REQUIRE(offload({{"optimizer-cpu-offload"}}).fraction == 1.0);
  REQUIRE(error_with({{"chunked-optimizer-state-offload"}, {"offload-optimizer-states"}}).find("in two ways") !=
          std::string::npos);
  // Two strategies at once are a job that a rule refuses, with the reason (rules_offload.cpp).
  const Job both = job_with({{"optimizer-cpu-offload"}, {"offload-optimizer-states"}});
  REQUIRE(both.offload.policy == Policy::full_reload);
  REQUIRE(both.megatron.optimizer_cpu_offload);
}

TEST_CASE("values that Megatron would not take are errors at their place") {
  REQUIRE(
      error_with({{"moe-layer-freq", "[1,1]"}, {"num-experts", "4"}}).starts_with("train.sh:7:1: --moe-layer-freq"));
  REQUIRE(error_with({{"optimizer", "adamw"}}).starts_with("train.sh:7:1: --optimizer: unknown value \"adamw\""));
}
