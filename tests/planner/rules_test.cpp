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
#include "tests/planner/rule_breakers.hpp"

using namespace ebb;

namespace {

using test::Breaker;
using test::clean_job;

std::vector<Breaker> all_breakers() {
  std::vector<Breaker> all;
  for (const auto& part :
       {test::size_breakers(), test::parallel_breakers(), test::optimizer_breakers(), test::precision_breakers(),
        test::run_breakers(), test::offload_breakers(), test::offload_state_breakers()})
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
  for (const Violation& violation : broken) {
    CHECK_FALSE(violation.problem.empty());
    // What is wrong with a layout string says by itself what to change.
    CHECK((violation.rule->id == "layout-fits" || !violation.cure.empty()));
  }
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
  job.optimizer.distributed = false;  // its compact layout
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

TEST_CASE("gradients may be fp16 beside fp16 parameters") {
  Job job = clean_job();
  job.precision.params = job.precision.grads = Dtype::fp16;
  CHECK(violations(job).empty());
}

// The layer-wise optimizer gathers whole parameters without the distributed one beside it.
TEST_CASE("overlapped gathering goes with Muon's layer-wise optimizer") {
  Job job = clean_job();
  job.optimizer = {.kind = OptimizerKind::muon, .distributed = false, .layer_wise = true, .decoupled_lr = false};
  CHECK(violations(job, Policy::windowed, Megatron::dev).empty());
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
