// Dtypes of parameters, gradients and state, the FP8 and FP4 recipes, and which of them the GPU runs.
//
// No rule about pairs of moment types: Transformer Engine's kernel takes both in fp32 or both in bf16, but its
// optimizer converts every other pair to fp32 for the step, at the price of temporaries
// (planner/optimizer_traffic.hpp).
#include <fmt/format.h>

#include "models/gpu_architecture.hpp"
#include "planner/rule_lists.hpp"

namespace ebb::rule_lists {

namespace {

constexpr std::string_view kTeSupport =
    "Transformer Engine main d0067d0da6, transformer_engine/pytorch/quantization.py, check_*_support";

std::string capability_text(ComputeCapability c) { return fmt::format("{}.{}", c.major, c.minor); }

/// The GPU must lie in [least, below); `what` runs there.
void require_capability(const Situation& s, Findings& out, const char* what, ComputeCapability least,
                        ComputeCapability below, const char* cure) {
  const auto has = compute_capability(s.job.cluster.gpu.name);
  if (!has || (*has >= least && *has < below)) return;
  out.push_back({fmt::format("{} does not run on {}, which has compute capability {}", what, s.job.cluster.gpu.name,
                             capability_text(*has)),
                 cure});
}

constexpr ComputeCapability kAny{1000, 0};

Rules dtype_rules() {
  return {
      {.id = "params-fp8",
       .key = "precision.params",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.params == Dtype::fp8)
               out.push_back({"fp8 parameters come from fp8.param_gather",
                              "set params: bf16 and fp8: {recipe: blockwise, param_gather: true}"});
           },
       .reason = "",
       .source = kArguments},
      {.id = "params-fp32-quantised",
       .key = "precision.params",
       .find =
           [](const Situation& s, Findings& out) {
             const Precision& p = s.job.precision;
             if (p.params == Dtype::fp32 && (p.fp8 != Fp8Recipe::none || p.fp4 != Fp4Recipe::none))
               out.push_back({"fp32 parameters with an FP8 or FP4 recipe are nothing that Ebb plans",
                              "use bf16, or leave the recipe out"});
           },
       .reason = "the recipes' memory is known for bf16 models only",
       .source = "Ebb"},
      {.id = "grads-type",
       .key = "precision.grads",
       .find =
           [](const Situation& s, Findings& out) {
             const Dtype grads = s.job.precision.grads;
             const bool as_params = grads == Dtype::fp16 && s.job.precision.params == Dtype::fp16;
             if (grads != Dtype::fp32 && grads != Dtype::bf16 && !as_params)
               out.push_back({fmt::format("gradients cannot be {}", name_of(grads)), "use fp32 or bf16"});
           },
       .reason = "they are reduced in fp32, in bf16, or in the type of fp16 parameters",
       .source = kArguments},
      {.id = "master-type",
       .key = "precision.master",
       .find =
           [](const Situation& s, Findings& out) {
             const Dtype master = s.job.precision.master;
             if (master != Dtype::fp32 && master != Dtype::fp16)
               out.push_back({fmt::format("master weights cannot be {}", name_of(master)), "use fp32"});
           },
       .reason = "",
       .source = kArguments},
      {.id = "plain-optimizer-fp32",
       .key = "precision.precision_aware",
       .find =
           [](const Situation& s, Findings& out) {
             const Precision& p = s.job.precision;
             if (p.is_precision_aware()) return;
             for (const auto& [type, key] : {std::pair{p.exp_avg, "exp_avg"}, std::pair{p.exp_avg_sq, "exp_avg_sq"},
                                             std::pair{p.master, "master"}})
               if (type != Dtype::fp32)
                 out.push_back({fmt::format("{} in {} needs the precision-aware optimizer", key, name_of(type)),
                                "set precision_aware: true or use fp32", fmt::format("precision.{}", key)});
           },
       .reason = "the standard optimizer keeps fp32 state",
       .source = kOptimizerConfig},
  };
}

Rules recipe_rules() {
  return {
      {.id = "fp8-gather-recipe",
       .key = "precision.fp8.param_gather",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.fp8_param_gather && s.job.precision.fp8 == Fp8Recipe::none)
               out.push_back({"needs an fp8 recipe", "set fp8.recipe to delayed, tensorwise, blockwise or mxfp8"});
           },
       .reason = "",
       .source = kArguments},
      {.id = "fp4-gather-recipe",
       .key = "precision.fp4.param_gather",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.fp4_param_gather && s.job.precision.fp4 == Fp4Recipe::none)
               out.push_back({"needs an fp4 recipe", "set fp4.recipe: nvfp4"});
           },
       .reason = "",
       .source = kArguments},
      {.id = "fp8-or-fp4",
       .key = "precision.fp4",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.fp4 != Fp4Recipe::none && s.job.precision.fp8 != Fp8Recipe::none)
               out.push_back({"stands beside an fp8 recipe", "leave one of them out"});
           },
       .reason = "a run has one recipe",
       .source = kArguments},
      {.id = "fp8-gather-distributed",
       .key = "precision.fp8.param_gather",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.fp8_param_gather && !s.job.optimizer.distributed && !s.job.megatron.fsdp)
               out.push_back({"needs the distributed optimizer", "set optimizer.distributed: true or leave it out"});
           },
       .reason = "its all-gather is what carries the quantised parameters",
       .source = kArguments},
      {.id = "grad-buffer-reuse-needs-mxfp8",
       .key = "precision.fp8.reuse_grad_buffer",
       .find =
           [](const Situation& s, Findings& out) {
             const Precision& p = s.job.precision;
             if (p.reuses_grad_buffer() && !(p.fp8 == Fp8Recipe::mxfp8 && p.fp8_param_gather))
               out.push_back({"needs MXFP8 parameter gather",
                              "set fp8.recipe: mxfp8 and fp8.param_gather: true, or leave it out"});
           },
       .reason = "only MXFP8 weights are gathered through the gradient buffer",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/distributed/distributed_data_parallel_config.py, "
                 "__post_init__"},
  };
}

Rules hardware_rules() {
  return {
      {.id = "gpu-fp8",
       .key = "precision.fp8.recipe",
       .find =
           [](const Situation& s, Findings& out) {
             const Fp8Recipe recipe = s.job.precision.fp8;
             if (recipe == Fp8Recipe::delayed || recipe == Fp8Recipe::tensorwise)
               require_capability(s, out, "FP8", {8, 9}, kAny, "use bf16, or a GPU from Ada or Hopper on");
           },
       .reason = "FP8 matrix products exist from 8.9 on",
       .source = kTeSupport},
      {.id = "gpu-blockwise",
       .key = "precision.fp8.recipe",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.fp8 == Fp8Recipe::blockwise)
               require_capability(s, out, "blockwise FP8", {9, 0}, kAny,
                                  "use delayed or tensorwise where the GPU has FP8, or a GPU from Hopper on");
           },
       .reason = "blockwise scaling runs from 9.0 on, with CUDA 12.9",
       .source = kTeSupport},
      {.id = "gpu-mxfp8",
       .key = "precision.fp8.recipe",
       .find =
           [](const Situation& s, Findings& out) {
             // Quantised in the step and never multiplied: Ebb's own runtime does that on any GPU.
             const bool own = s.job.precision.fp8_param_gather && !s.job.precision.reuses_grad_buffer();
             if (s.job.precision.fp8 == Fp8Recipe::mxfp8 && !own)
               require_capability(s, out, "MXFP8", {10, 0}, {12, 0},
                                  "use blockwise on Hopper, tensorwise elsewhere, or a B200 or B300");
           },
       .reason = "MXFP8 runs from 10.0 on and, for all layouts of a product, not yet on 12.0",
       .source = kTeSupport},
      {.id = "gpu-nvfp4",
       .key = "precision.fp4.recipe",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.fp4 == Fp4Recipe::nvfp4)
               require_capability(s, out, "NVFP4", {10, 0}, kAny, "use an fp8 recipe, or a GPU from Blackwell on");
           },
       .reason = "FP4 matrix products exist from 10.0 on",
       .source = kTeSupport},
      {.id = "grouped-matmul-bf16",
       .key = "experts.grouped_matmul",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.model.moe && s.job.experts.grouped_matmul && s.job.precision.params != Dtype::bf16)
               out.push_back(
                   {fmt::format("grouped products of experts need bf16, not {}", name_of(s.job.precision.params)),
                    "set grouped_matmul: false, or precision.params: bf16"});
           },
       .reason = "",
       .source = kArguments},
  };
}

}  // namespace

Rules precision_rules() {
  Rules rules = dtype_rules();
  for (const Rules& more : {recipe_rules(), hardware_rules()}) rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

}  // namespace ebb::rule_lists
