// Every rule of the table is broken alone by one change to a job that keeps them all, and by nothing else; a rule
// without such a change fails the test.
#include "planner/rules.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "models/gpu_architecture.hpp"
#include "planner/constraints.hpp"
#include "tests/catch.hpp"
#include "tests/planner/test_job.hpp"

using namespace ebb;

namespace {

Job clean_job() {
  Job job = test::small_job();
  job.cluster.gpu.name = "NVIDIA H200";
  return job;
}

void add_experts(Job& job) {
  MoeSpec moe;
  moe.experts = 8;
  moe.top_k = 2;
  moe.ffn = 1024;
  job.model.moe = moe;
}

void undistribute(Job& job) {
  job.optimizer.distributed = false;
  job.parallel.overlap_param_gather = false;
}

void add_mxfp8(Job& job) {
  job.cluster.gpu.name = "NVIDIA B200";
  job.precision.fp8 = Fp8Recipe::mxfp8;
  job.precision.fp8_param_gather = true;
}

void recompute_all(Job& job) {
  job.recompute = {.granularity = RecomputeGranularity::full, .method = "uniform", .layers = 1, .modules = {}};
}

/// Breaks `rule`, and only that, in a job that names `policy` (or none).
struct Breaker {
  std::string_view rule;
  void (*change)(Job&);
  std::vector<Policy> policies{};
  Megatron megatron = Megatron::any;
};

const std::vector<Policy> kStateOffload = {Policy::full_reload, Policy::chunked, Policy::windowed};
const std::vector<Policy> kReload = {Policy::full_reload, Policy::chunked};

std::vector<Breaker> size_breakers() {
  return {
      {"model-range", [](Job& j) { j.model.vocab = 0; }},
      {"model-range", [](Job& j) { j.model.layers = 1 << 20; }},
      {"model-size",
       [](Job& j) {
         j.model.layers = 4096;
         j.model.hidden = j.model.ffn = 1 << 24;
       }},
      {"job-range", [](Job& j) { j.batch.micro = 0; }},
      {"job-range", [](Job& j) { j.parallel.gpus = std::int64_t{1} << 62; }},
      {"world-dense", [](Job& j) { j.parallel.gpus = 12, j.parallel.tensor = 8; }},
      {"world-expert", [](Job& j) { j.parallel.expert_tensor = 3; }},
      {"virtual-needs-pipeline", [](Job& j) { j.parallel.virtual_pipeline = 2; }},
      {"layout-alone",
       [](Job& j) {
         j.parallel.pipeline = 2;
         j.parallel.pipeline_layout = "Etttt|ttttL";
         j.parallel.first_stage_layers = 4;
       }},
      {"uneven-without-account",
       [](Job& j) {
         j.parallel.pipeline = 2;
         j.parallel.last_stage_layers = 4;
         j.parallel.account_for_loss = true;
       }},
      {"layout-fits",
       [](Job& j) {
         j.parallel.pipeline = 2;
         j.parallel.pipeline_layout = "Etttt|tttt";
       }},
      {"even-split", [](Job& j) { j.model.layers = 7, j.parallel.pipeline = 2; }},
      {"even-split",
       [](Job& j) {
         j.parallel.pipeline = 2;
         j.parallel.account_for_embedding = true;
       }},
      {"uneven-split",
       [](Job& j) {
         j.parallel.pipeline = 4;
         j.parallel.first_stage_layers = 3;
       }},
      {"uneven-split",
       [](Job& j) {
         j.parallel.pipeline = 2;
         j.parallel.first_stage_layers = 4;
         j.parallel.last_stage_layers = 3;
       }},
  };
}

std::vector<Breaker> parallel_breakers() {
  return {
      {"tensor-heads", [](Job& j) { j.model.heads = 12, j.parallel.tensor = 8; }},
      {"tensor-kv-heads", [](Job& j) { j.model.kv_heads = 6, j.parallel.tensor = 4; }},
      {"tensor-qkv-rows",
       [](Job& j) {
         j.model.heads = j.parallel.tensor = 8;
         j.model.kv_heads = 2;
         j.model.head_dim = 3;
       }},
      {"tensor-mtp",
       [](Job& j) {
         j.model.mtp = MtpSpec{1};
         j.model.hidden += 2;
         j.parallel.tensor = 4;
       }},
      {"tensor-ffn", [](Job& j) { j.model.ffn = 4098, j.parallel.tensor = 4; }},
      {"tensor-shared-ffn",
       [](Job& j) {
         add_experts(j);
         j.model.moe->shared_ffn = 1026;
         j.parallel.tensor = 4;
         j.parallel.sequence = true;
       }},
      {"sequence-needs-tensor", [](Job& j) { j.parallel.sequence = true; }},
      {"expert-needs-experts", [](Job& j) { j.parallel.expert = 2; }},
      {"expert-divides",
       [](Job& j) {
         add_experts(j);
         j.model.moe->experts = 6;
         j.parallel.expert = 4;
       }},
      {"experts-of-rank",
       [](Job& j) {
         add_experts(j);
         j.model.layers = 16;
         j.model.moe->experts = 1 << 14;
       }},
      {"expert-tensor-ffn",
       [](Job& j) {
         add_experts(j);
         j.model.moe->ffn = 1025;
         j.parallel.expert_tensor = 2;
       }},
      {"moe-needs-sequence",
       [](Job& j) {
         add_experts(j);
         j.parallel.tensor = 2;
       }},
      {"expert-not-fp16",
       [](Job& j) {
         add_experts(j);
         j.parallel.expert = 2;
         j.precision.params = Dtype::fp16;
         j.experts.grouped_matmul = false;
       }},
      {"context-sequence", [](Job& j) { j.parallel.context = 4, j.batch.sequence = 2044; }},
      {"sequence-tensor",
       [](Job& j) {
         j.parallel.tensor = 8;
         j.parallel.sequence = true;
         j.batch.sequence = 2044;
       }},
      {"learned-positions", [](Job& j) { j.model.positions = Positions::learned, j.model.max_positions = 1024; }},
      {"batch-divides", [](Job& j) { j.batch.global = 20; }},
      {"interleaved-groups",
       [](Job& j) {
         j.parallel.pipeline = 4;
         j.parallel.virtual_pipeline = 2;
         j.batch.global = 12;
       }},
      {"interleaved-groups",  // smaller than the pipeline
       [](Job& j) {
         j.parallel.pipeline = 4;
         j.parallel.virtual_pipeline = 2;
         j.parallel.micro_batch_group = 2;
       }},
      {"interleaved-groups",  // 8 micro-batches: 5, then 3 of at least 4
       [](Job& j) {
         j.parallel.pipeline = 4;
         j.parallel.virtual_pipeline = 2;
         j.parallel.micro_batch_group = 5;
       }},
      {"activation-size",
       [](Job& j) {
         j.compute.attention = Attention::local;
         j.batch.sequence = std::int64_t{1} << 30;
       }},
  };
}

std::vector<Breaker> optimizer_breakers() {
  return {
      {"instances-dense", [](Job& j) { j.parallel.optimizer_instances = 3; }},
      {"instances-expert",
       [](Job& j) {
         add_experts(j);
         j.parallel.expert = 8;
         j.parallel.optimizer_instances = 2;
       }},
      {"instances-need-distributed",
       [](Job& j) {
         undistribute(j);
         j.parallel.optimizer_instances = 2;
       }},
      {"bucket-size", [](Job& j) { j.parallel.bucket_numel = Numel{0}; }},
      {"gather-needs-reduce", [](Job& j) { j.parallel.overlap_grad_reduce = false; }},
      {"gather-needs-distributed", [](Job& j) { j.optimizer.distributed = false; }},
      {"gather-with-step-overlaps",
       [](Job& j) {
         j.parallel.pipeline = j.parallel.virtual_pipeline = 2;
         j.parallel.gather_with_step = true;
         j.parallel.overlap_param_gather = false;
       }},
      {"gather-with-step-interleaved", [](Job& j) { j.parallel.gather_with_step = true; }},
      {"layer-wise-muon", [](Job& j) { j.optimizer.layer_wise = true; }},
      {"precision-aware-adam",
       [](Job& j) {
         j.precision.exp_avg = Dtype::bf16;
         j.optimizer.kind = OptimizerKind::lion;
       }},
      {"precision-aware-distributed",
       [](Job& j) {
         undistribute(j);
         j.precision.exp_avg = Dtype::bf16;
       }},
  };
}

std::vector<Breaker> precision_breakers() {
  return {
      {"params-fp8", [](Job& j) { j.precision.params = Dtype::fp8; }},
      {"params-fp32-quantised",
       [](Job& j) {
         j.precision.params = Dtype::fp32;
         j.precision.fp8 = Fp8Recipe::delayed;
       }},
      {"grads-type", [](Job& j) { j.precision.grads = Dtype::fp16; }},
      {"master-type", [](Job& j) { j.precision.master = Dtype::bf16; }},
      {"plain-optimizer-fp32",
       [](Job& j) {
         j.precision.precision_aware = false;
         j.precision.exp_avg_sq = Dtype::bf16;
       }},
      {"fp8-gather-recipe", [](Job& j) { j.precision.fp8_param_gather = true; }},
      {"fp4-gather-recipe", [](Job& j) { j.precision.fp4_param_gather = true; }},
      {"fp8-or-fp4",
       [](Job& j) {
         j.cluster.gpu.name = "NVIDIA B200";
         j.precision.fp4 = Fp4Recipe::nvfp4;
         j.precision.fp8 = Fp8Recipe::delayed;
       }},
      {"fp8-gather-distributed",
       [](Job& j) {
         undistribute(j);
         j.precision.fp8 = Fp8Recipe::delayed;
         j.precision.fp8_param_gather = true;
       }},
      {"mxfp8-gather-reuses-grads",
       [](Job& j) {
         add_mxfp8(j);
         j.precision.fp8_reuse_grad_buffer = false;
       }},
      {"grad-buffer-reuse-needs-mxfp8", [](Job& j) { j.precision.fp8_reuse_grad_buffer = true; }},
      {"gpu-fp8",
       [](Job& j) {
         j.cluster.gpu.name = "NVIDIA A100-SXM4-80GB";
         j.precision.fp8 = Fp8Recipe::tensorwise;
       }},
      {"gpu-blockwise",
       [](Job& j) {
         j.cluster.gpu.name = "NVIDIA GeForce RTX 4090";
         j.precision.fp8 = Fp8Recipe::blockwise;
       }},
      {"gpu-mxfp8", [](Job& j) { j.precision.fp8 = Fp8Recipe::mxfp8; }},
      {"gpu-mxfp8",
       [](Job& j) {
         j.cluster.gpu.name = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition";
         j.precision.fp8 = Fp8Recipe::mxfp8;
       }},
      {"gpu-nvfp4", [](Job& j) { j.precision.fp4 = Fp4Recipe::nvfp4; }},
      {"grouped-matmul-bf16",
       [](Job& j) {
         add_experts(j);
         j.precision.params = Dtype::fp16;
       }},
  };
}

std::vector<Breaker> run_breakers() {
  return {
      {"recompute-method", [](Job& j) { j.recompute.granularity = RecomputeGranularity::full; }},
      {"recompute-layers",
       [](Job& j) {
         recompute_all(j);
         j.recompute.layers = 9;
       }},
      {"graphs-without-full-recompute",
       [](Job& j) {
         recompute_all(j);
         j.megatron.cuda_graphs = CudaGraphs::local;
       }},
      {"graphs-without-expandable-segments",
       [](Job& j) {
         j.megatron.cuda_graphs = CudaGraphs::transformer_engine;
         j.megatron.expandable_segments = true;
       }},
      {"optimizer-graph-fp32-state",
       [](Job& j) {
         j.megatron.optimizer_cuda_graph = true;
         j.precision.exp_avg = Dtype::bf16;
       }},
      {"optimizer-graph-fp32-state",  // remainders
       [](Job& j) {
         j.megatron.optimizer_cuda_graph = true;
         j.precision.precision_aware = true;
       }},
      {"async-save-format",
       [](Job& j) {
         j.checkpoint.async_save = true;
         j.checkpoint.format = CheckpointFormat::torch;
       }},
      {"fsdp-format", [](Job& j) { j.megatron.fsdp = true; }},
      {"fsdp-dtensor-needs-fsdp", [](Job& j) { j.checkpoint.format = CheckpointFormat::fsdp_dtensor; }},
      {"budget-device", [](Job& j) { j.budget.device = Bytes{j.cluster.gpu.memory.value.value + 1}; }},
      {"budget-device", [](Job& j) { j.budget.device = Bytes{0}; }},
      {"budget-host", [](Job& j) { j.budget.host = Bytes{j.cluster.host.memory.value.value + 1}; }},
      {"budget-host", [](Job& j) { j.budget.host = Bytes{-1}; }},
  };
}

std::vector<Breaker> offload_breakers() {
  return {
      {"offload-values", [](Job& j) { j.offload.fraction = 1.5; }},
      {"offload-values",
       [](Job& j) {
         j.offload.policy = Policy::chunked;
         j.offload.slots = 2;
       },
       {Policy::chunked}},
      {"policy-of-megatron", [](Job&) {}, {Policy::full_reload, Policy::chunked, Policy::pipelined}, Megatron::dev},
      {"policy-of-megatron", [](Job&) {}, {Policy::windowed, Policy::pipelined}, Megatron::pr6544},
      {"policy-of-megatron", [](Job&) {}, kStateOffload, Megatron::main},
      {"fp32-params-resident",
       [](Job& j) { j.precision.params = Dtype::fp32; },
       {Policy::full_reload, Policy::chunked, Policy::windowed, Policy::cpu_adam, Policy::pipelined}},
      {"pipelined-adam", [](Job& j) { j.optimizer.kind = OptimizerKind::lion; }, {Policy::pipelined}},
      {"reload-adam", [](Job& j) { j.optimizer.kind = OptimizerKind::sgd; }, kReload},
      {"reload-distributed", undistribute, kReload},
      {"windowed-optimizer", [](Job& j) { j.optimizer.kind = OptimizerKind::lion; }, {Policy::windowed}},
      {"windowed-optimizer", undistribute, {Policy::windowed}},
      {"windowed-optimizer",
       [](Job& j) { j.optimizer.kind = OptimizerKind::muon; },  // not layer-wise
       {Policy::windowed}},
      {"windowed-muon-bf16",
       [](Job& j) {
         j.optimizer.kind = OptimizerKind::muon;
         j.optimizer.layer_wise = true;
         j.precision.params = Dtype::fp16;
       },
       {Policy::windowed}},
      {"one-offload", [](Job& j) { j.megatron.optimizer_cpu_offload = true; }, kStateOffload},
      {"reload-async-save", [](Job& j) { j.checkpoint.async_save = true; }, kReload},
      {"windowed-async-save", [](Job& j) { j.checkpoint.async_save = true; }, {Policy::windowed}},
      {"offload-optimizer-graph", [](Job& j) { j.megatron.optimizer_cuda_graph = true; }, kStateOffload},
      {"offload-full-iteration-graph", [](Job& j) { j.megatron.cuda_graphs = CudaGraphs::full_iteration; },
       kStateOffload},
      {"reload-rl-offload", [](Job& j) { j.megatron.rl_offload_optimizer = true; }, kReload},
      {"offload-fsdp",
       [](Job& j) {
         j.megatron.fsdp = true;
         j.checkpoint.format = CheckpointFormat::fsdp_dtensor;
       },
       kStateOffload},
      {"chunked-fp4-gather",
       [](Job& j) {
         j.cluster.gpu.name = "NVIDIA B200";
         j.precision.fp4 = Fp4Recipe::nvfp4;
         j.precision.fp4_param_gather = true;
       },
       {Policy::chunked}},
      {"chunked-mxfp8-reuse", add_mxfp8, {Policy::chunked}},
  };
}

std::vector<Breaker> offload_state_breakers() {
  return {
      {"offload-moments",
       [](Job& j) {
         j.precision.exp_avg = Dtype::fp8;
         j.precision.fp8 = Fp8Recipe::blockwise;  // under which Megatron keeps the masters
       },
       kStateOffload},
      {"offload-moments", [](Job& j) { j.precision.exp_avg_sq = Dtype::fp16; }, {Policy::windowed}},
      {"reload-held-masters-fp32", [](Job& j) { j.precision.master = Dtype::fp16; }, kReload},
      {"reload-held-masters-whole", [](Job& j) { j.precision.exp_avg = j.precision.exp_avg_sq = Dtype::bf16; },
       kReload},
      {"reload-held-masters-whole",
       [](Job& j) {
         j.precision.precision_aware = true;
         j.precision.fp8 = Fp8Recipe::delayed;
       },
       kReload},
      {"windowed-masters-fp32", [](Job& j) { j.precision.master = Dtype::fp16; }, {Policy::windowed}},
      {"windowed-checkpoint-format", [](Job& j) { j.checkpoint.format = CheckpointFormat::torch; }, {Policy::windowed}},
      {"windowed-checkpoint-format",
       [](Job& j) {
         j.checkpoint.format = CheckpointFormat::torch;
         j.checkpoint.save_optimizer = false;
         j.checkpoint.start = Start::resume;
       },
       {Policy::windowed}},
      {"cpu-adam-kind", [](Job& j) { j.optimizer.kind = OptimizerKind::lion; }, {Policy::cpu_adam}},
      {"cpu-adam-distributed", undistribute, {Policy::cpu_adam}},
      {"cpu-adam-precision-aware", [](Job& j) { j.precision.precision_aware = false; }, {Policy::cpu_adam}},
      {"cpu-adam-fp32-state", [](Job& j) { j.precision.exp_avg = Dtype::bf16; }, {Policy::cpu_adam}},
      {"cpu-adam-fp8-gather",
       [](Job& j) {
         j.precision.fp8 = Fp8Recipe::blockwise;
         j.precision.fp8_param_gather = true;
       },
       {Policy::cpu_adam}},
  };
}

std::vector<Breaker> all_breakers() {
  std::vector<Breaker> all;
  for (const auto& part : {size_breakers(), parallel_breakers(), optimizer_breakers(), precision_breakers(),
                           run_breakers(), offload_breakers(), offload_state_breakers()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::set<std::string> rules_of(const std::vector<Violation>& list) {
  std::set<std::string> ids;
  for (const Violation& violation : list) ids.insert(std::string(violation.rule->id));
  return ids;
}

void check_broken_alone(const Breaker& breaker, std::optional<Policy> policy) {
  INFO(breaker.rule << " under " << (policy ? name_of(*policy) : "no policy"));
  CHECK(violations(clean_job(), policy, Megatron::any).empty());
  Job job = clean_job();
  breaker.change(job);
  const std::vector<Violation> broken = violations(job, policy, breaker.megatron);
  CHECK(rules_of(broken) == std::set<std::string>{std::string(breaker.rule)});
  if (policy && !job.offload.policy && breaker.megatron == Megatron::any) {
    // The job itself is not wrong: only this policy is ruled out.
    CHECK(violations(job).empty());
    CHECK(objection_to(job, {.policy = *policy}) != "");
  }
}

}  // namespace

TEST_CASE("each rule is broken alone") {
  for (const Breaker& breaker : all_breakers()) {
    if (breaker.policies.empty()) check_broken_alone(breaker, std::nullopt);
    for (const Policy policy : breaker.policies) check_broken_alone(breaker, policy);
  }
}

TEST_CASE("no rule is without a change that breaks it, for each of its policies") {
  std::set<std::pair<std::string_view, std::optional<Policy>>> covered;
  for (const Breaker& breaker : all_breakers()) {
    if (breaker.policies.empty()) covered.insert({breaker.rule, std::nullopt});
    for (const Policy policy : breaker.policies) covered.insert({breaker.rule, policy});
  }
  std::set<std::string_view> ids;
  for (const Rule& rule : all_rules()) {
    INFO(rule.id);
    CHECK(ids.insert(rule.id).second);
    CHECK_FALSE(rule.source.empty());
    if (rule.policies.empty()) CHECK(covered.contains({rule.id, std::nullopt}));
    for (const Policy policy : rule.policies)
      // Every Megatron takes `resident`, and those with other policies take cpu-adam too.
      if (rule.id != "policy-of-megatron" || (policy != Policy::resident && policy != Policy::cpu_adam))
        CHECK(covered.contains({rule.id, policy}));
  }
  for (const Breaker& breaker : all_breakers()) CHECK(ids.contains(breaker.rule));
}

TEST_CASE("a refusal lists every broken rule at the place of its key") {
  Job job = clean_job();
  job.batch.global = 20;
  job.precision.fp8 = Fp8Recipe::mxfp8;
  job.checkpoint.async_save = true;
  job.offload.policy = Policy::chunked;
  job.places["batch.global"] = {"small.yaml", 5, 20};
  job.places["checkpoint"] = {"small.yaml", 9, 1};
  try {
    check(job);
    FAIL("accepted");
  } catch (const InputError& error) {
    const std::string text = error.what();
    INFO(text);
    CHECK(std::count(text.begin(), text.end(), '\n') == 2);
    CHECK(text.rfind("small.yaml:5:20: batch.global: 20 is not a multiple of", 0) == 0);
    CHECK(text.find("\nsmall.yaml: precision.fp8.recipe: MXFP8 does not run on NVIDIA H200") != std::string::npos);
    CHECK(text.find("\nsmall.yaml:9:1: checkpoint.async_save: chunked does not go with asynchronous saves; the "
                    "background writer would race") != std::string::npos);
  }
}

TEST_CASE("a fixed policy is refused with its reason, an open one is ruled out only") {
  Job job = clean_job();
  job.megatron.optimizer_cpu_offload = true;
  CHECK_NOTHROW(check(job));
  CHECK(objection_to(job, {.policy = Policy::windowed}).find("two strategies") != std::string::npos);
  CHECK(objection_to(job, {.policy = Policy::resident}) == "");
  CHECK_THROWS_AS(check_policy(job, Policy::chunked), InputError);
  job.offload.policy = Policy::full_reload;
  CHECK_THROWS_AS(check(job), InputError);
}

// Megatron-LM keeps the masters under these recipes; remainders=false needs a change of its code, which takes the flag.
TEST_CASE("precision-aware state that pull request 6544 takes") {
  Job job = clean_job();
  job.precision.exp_avg = job.precision.exp_avg_sq = Dtype::bf16;
  for (const Fp8Recipe recipe : {Fp8Recipe::tensorwise, Fp8Recipe::blockwise}) {
    job.precision.fp8 = recipe;
    CHECK(objections(job, Policy::chunked).empty());
  }
  job.precision.fp8 = Fp8Recipe::delayed;
  REQUIRE(objections(job, Policy::chunked).size() == 1);
  const std::string why = text_of(objections(job, Policy::chunked).front());
  CHECK(why.find("cannot be turned off from the command line") != std::string::npos);
  CHECK(objections(job, Policy::windowed).empty());  // the merged variant takes remainders
  job.precision.remainders = false;
  CHECK(objections(job, Policy::chunked).empty());
}

TEST_CASE("the merged variant takes Muon with the layer-wise optimizer, and saves without the optimizer as it likes") {
  Job job = clean_job();
  job.optimizer.kind = OptimizerKind::muon;
  job.optimizer.layer_wise = true;
  CHECK(violations(job, Policy::windowed, Megatron::dev).empty());
  CHECK_FALSE(objections(job, Policy::chunked).empty());
  job = clean_job();
  job.checkpoint.format = CheckpointFormat::torch;
  job.checkpoint.save_optimizer = false;
  CHECK(objections(job, Policy::windowed).empty());
  job.checkpoint.format = CheckpointFormat::torch_dist;
  job.checkpoint.async_save = true;
  CHECK(objections(job, Policy::windowed).empty());
}

TEST_CASE("uneven pipelines that add up are accepted") {
  Job job = clean_job();
  job.parallel.pipeline = 4;
  job.parallel.first_stage_layers = 2;
  job.parallel.last_stage_layers = 2;
  CHECK(violations(job).empty());
  job.parallel.first_stage_layers.reset();
  job.parallel.last_stage_layers.reset();
  job.model.layers = 6;
  job.parallel.account_for_embedding = job.parallel.account_for_loss = true;
  CHECK(violations(job).empty());
  job.parallel.virtual_pipeline = 2;
  job.parallel.micro_batch_group = 5;
  job.batch.global = 18;  // 9 micro-batches: 5 and 4
  CHECK(violations(job).empty());
}

// Compute capabilities from NVIDIA's list of CUDA GPUs.
TEST_CASE("a GPU's name tells its compute capability, an unknown one nothing") {
  CHECK(compute_capability("NVIDIA H200") == ComputeCapability{9, 0});
  CHECK(compute_capability("NVIDIA H100 80GB HBM3") == ComputeCapability{9, 0});
  CHECK(compute_capability("NVIDIA GH200 480GB") == ComputeCapability{9, 0});
  CHECK(compute_capability("NVIDIA GB200") == ComputeCapability{10, 0});
  CHECK(compute_capability("NVIDIA A100-SXM4-80GB") == ComputeCapability{8, 0});
  CHECK(compute_capability("NVIDIA GeForce RTX 4090") == ComputeCapability{8, 9});
  CHECK(compute_capability("NVIDIA RTX PRO 6000 Blackwell Workstation Edition") == ComputeCapability{12, 0});
  CHECK(compute_capability("NVIDIA RTX 6000 Ada Generation") == ComputeCapability{8, 9});
  CHECK_FALSE(compute_capability("Some Accelerator").has_value());
  Job job = clean_job();
  job.cluster.gpu.name = "Some Accelerator";
  job.precision.fp8 = Fp8Recipe::mxfp8;
  CHECK(violations(job).empty());
}
