// The blocks of run_settings.hpp and the newer keys of `parallel` and `precision`: read as written, written as read,
// and each mistake with its place.
#include "models/run_settings_yaml.hpp"

#include <fmt/format.h>

#include "models/job_yaml.hpp"
#include "models/text_file.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

namespace {

const std::string kSmall =
    "model: llama3-8b\ncluster: hgx-h200\nparallel: {gpus: 8}\nbatch: {global: 64, sequence: 8192}\n";

Job job(const std::string& text) { return read_job(parse_yaml(text, "j.yaml"), "j.yaml"); }

}  // namespace

TEST_CASE("run settings: every key away from its default round-trips") {
  const Job j = job(
      "model: llama3-8b\ncluster: hgx-h200\n"
      "parallel: {gpus: 64, pipeline: 4, virtual_pipeline: 2, first_stage_layers: 7, last_stage_layers: 5,\n"
      "           account_for_embedding: true, account_for_loss: true, micro_batch_group: 8, gather_with_step: true,\n"
      "           pipeline_inner: true, pad_buckets: true}\n"
      "batch: {global: 64, sequence: 8192}\n"
      "precision: {precision_aware: true, remainders: false, fp4: {recipe: nvfp4, param_gather: true},\n"
      "            fp8: {recipe: mxfp8, param_gather: true, columnwise: eager, reuse_grad_buffer: false,\n"
      "                  first_bf16_layers: 1, last_bf16_layers: 2}}\n"
      "optimizer: {kind: muon, distributed: false, layer_wise: true, decoupled_lr: true}\n"
      "activations: {attention_dropout: 0.1, hidden_dropout: 0.25, cross_entropy: te, gradient_fusion: false,\n"
      "              bias_fusion: false, rope_fusion: false, loader_mask: true, deterministic: true}\n"
      "experts: {dispatcher: flex, capacity_factor: 1.25, pad_to_capacity: true, imbalance: 1.5,\n"
      "          grouped_matmul: false, permute_fusion: false}\n"
      "checkpoint: {format: torch, sharding: fully_reshardable, async_save: true, save_optimizer: false,\n"
      "             start: no-load-optim}\n"
      "megatron: {cuda_graphs: full_iteration, optimizer_cuda_graph: true, fsdp: true, rl_offload_optimizer: true,\n"
      "           optimizer_cpu_offload: true, expandable_segments: true, empty_cache_level: 2,\n"
      "           nccl_graph_register: false, tensor_overlap: true}\n");
  REQUIRE(j.parallel.first_stage_layers == 7);
  REQUIRE(j.parallel.last_stage_layers == 5);
  REQUIRE(j.parallel.micro_batch_group == 8);
  REQUIRE((j.parallel.account_for_embedding && j.parallel.account_for_loss && j.parallel.gather_with_step &&
           j.parallel.pipeline_inner && j.parallel.pad_buckets));
  REQUIRE(j.precision.precision_aware == true);
  REQUIRE(j.precision.remainders == false);
  REQUIRE(j.precision.fp4 == Fp4Recipe::nvfp4);
  REQUIRE(j.precision.fp8_columnwise == Columnwise::eager);
  REQUIRE_FALSE(j.precision.reuses_grad_buffer());
  REQUIRE(j.optimizer == OptimizerSettings{OptimizerKind::muon, false, true, true});
  REQUIRE(j.activations == ActivationSettings{0.1, 0.25, CrossEntropy::te, false, false, false, true, true});
  REQUIRE(j.experts == RoutingSettings{Dispatcher::flex, 1.25, true, 1.5, false, false});
  REQUIRE(j.checkpoint == CheckpointSettings{CheckpointFormat::torch, CheckpointSharding::fully_reshardable, true,
                                             false, Start::no_load_optim});
  REQUIRE(j.megatron == RuntimeSettings{.cuda_graphs = CudaGraphs::full_iteration,
                                        .optimizer_cuda_graph = true,
                                        .fsdp = true,
                                        .rl_offload_optimizer = true,
                                        .optimizer_cpu_offload = true,
                                        .expandable_segments = true,
                                        .empty_cache_level = 2,
                                        .nccl_graph_register = false,
                                        .tensor_overlap = true});

  const Job again = job(write_job(j));
  REQUIRE(again.parallel == j.parallel);
  REQUIRE(again.precision == j.precision);
  REQUIRE(again.optimizer == j.optimizer);
  REQUIRE(again.activations == j.activations);
  REQUIRE(again.experts == j.experts);
  REQUIRE(again.checkpoint == j.checkpoint);
  REQUIRE(again.megatron == j.megatron);
  REQUIRE(write_job(again) == write_job(j));
}

TEST_CASE("docs/jobs.md names every key of a job") {
  Job j = job(kSmall);
  j.parallel.pipeline_layout.assign(2, 'x');
  j.parallel.bucket_numel = Numel{1};
  j.parallel.first_stage_layers = j.parallel.last_stage_layers = 1;
  j.parallel.account_for_embedding = j.parallel.account_for_loss = true;
  j.parallel.micro_batch_group = 1;
  j.parallel.gather_with_step = j.parallel.pipeline_inner = j.parallel.pad_buckets = true;
  j.precision.precision_aware = j.precision.remainders = j.precision.fp8_reuse_grad_buffer = true;
  j.precision.first_bf16_layers = j.precision.last_bf16_layers = 1;
  j.recompute = {.granularity = RecomputeGranularity::full, .method = "block", .layers = 1, .modules = {}};
  j.offload = {Policy::chunked, Numel{1}, 1, 0.5, 2};
  j.budget = {Bytes{1}, Bytes{1}};
  j.compute.step_seconds = Seconds{1};
  j.compute.adam_by_policy[Policy::windowed] = AdamKernel::foreach;
  j.optimizer.layer_wise = j.activations.loader_mask = j.experts.pad_to_capacity = true;
  j.experts.capacity_factor = 1;
  j.checkpoint.async_save = j.megatron.fsdp = true;
  const std::string docs = read_text_file(EBB_SOURCE_DIR "/docs/jobs.md", 1 << 20, "");
  const YamlNode written = parse_yaml(write_job(j), "j.yaml");
  int keys = 0;
  for (const YamlEntry& block : written.entries) {
    if (block.key == "model" || block.key == "cluster") continue;
    INFO(block.key);
    REQUIRE(docs.find(block.key) != std::string::npos);
    for (const YamlEntry& entry : block.value.entries) {
      INFO(entry.key);
      ++keys;
      const bool nested = entry.key == "fp8" || entry.key == "fp4";
      if (!nested) REQUIRE(docs.find(fmt::format("`{}`", entry.key)) != std::string::npos);
      for (const YamlEntry& inner : entry.value.entries)
        if (nested) REQUIRE(docs.find(fmt::format("`{}.{}`", entry.key, inner.key)) != std::string::npos);
    }
  }
  REQUIRE(keys > 70);
}

TEST_CASE("run settings: what is not written keeps its default, and defaults are not written") {
  const Job j = job(kSmall);
  REQUIRE(j.optimizer.distributed);
  REQUIRE(j.activations.gradient_fusion);
  REQUIRE(j.experts.grouped_matmul);
  const std::string text = write_job(j);
  for (const std::string_view key : kRunSettingKeys)
    REQUIRE(text.find(std::string(1, '\n').append(key)) == std::string::npos);
}

TEST_CASE("run settings: mistakes") {
  const auto error = [](const std::string& more) { return error_of([&] { job(kSmall + more); }); };
  REQUIRE(error("optimizer: {kind: adamw}\n").find("j.yaml:5:") == 0);
  REQUIRE(error("activations: {hidden_dropout: 1.5}\n").find("from 0 to 1") != std::string::npos);
  REQUIRE(error("activations: {hidden_drop: 0.1}\n").find("hidden_dropout") != std::string::npos);
  REQUIRE(error("experts: {imbalance: 0.5}\n").find("experts.imbalance is 0.5") != std::string::npos);
  REQUIRE(error("experts: {capacity_factor: .nan}\n") != "");
  REQUIRE(error("checkpoint: {start: reume}\n").find("resume") != std::string::npos);
  REQUIRE(error("megatron: {empty_cache_level: 3}\n") != "");
  REQUIRE(error("megatron: [fsdp]\n") != "");
}

TEST_CASE("precision: who holds the master weights, and in how many bytes") {
  // megatron.md 2.2's table, row by row.
  Precision p;
  REQUIRE(p.state_bytes() == 12);
  REQUIRE_FALSE(p.optimizer_holds_masters());
  p.precision_aware = true;  // all fp32: 10 with remainders
  REQUIRE(p.keeps_remainders());
  REQUIRE(p.state_bytes() == 10);
  p.exp_avg = p.exp_avg_sq = Dtype::bf16;
  REQUIRE(p.state_bytes() == 6);
  p.remainders = false;
  REQUIRE(p.state_bytes() == 8);
  p.remainders.reset();
  p.fp8 = Fp8Recipe::blockwise;  // Megatron holds fp32 masters
  REQUIRE_FALSE(p.optimizer_holds_masters());
  REQUIRE(p.state_bytes() == 8);
  p.fp8 = Fp8Recipe::delayed;
  REQUIRE(p.optimizer_holds_masters());
  REQUIRE(p.state_bytes() == 6);
  p = Precision{};
  p.params = Dtype::fp32;  // its own master
  REQUIRE(p.state_bytes() == 8);
}
