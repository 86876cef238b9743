// What the dtypes and the checkpoint of offloaded state must be: a save reads the host's bytes as they are.
#include <fmt/format.h>

#include "planner/rule_lists.hpp"

namespace ebb::rule_lists {

namespace {

constexpr std::string_view kPull =
    "Megatron-LM pull request 6544 (c9eddcd3ae), megatron/core/optimizer/optimizer_config.py";
constexpr std::string_view kDev =
    "Megatron-LM dev d48bd6be0a (#6244), megatron/core/optimizer/optimizer_config.py, __post_init__";
constexpr std::string_view kHybrid = "Megatron-LM main d98e8a64dd, megatron/training/arguments.py:1884-1892";

bool copied_as_is(Dtype type) { return type == Dtype::fp32 || type == Dtype::bf16; }

void require_plain_moments(const Situation& s, Findings& out) {
  for (const auto& [type, key] : {std::pair{s.job.precision.exp_avg, "precision.exp_avg"},
                                  std::pair{s.job.precision.exp_avg_sq, "precision.exp_avg_sq"}})
    if (!copied_as_is(type))
      out.push_back({fmt::format("{} takes fp32 or bf16 moments only, not {}", name_of(*s.policy), name_of(type)),
                     "use fp32 or bf16", key});
}

Rules reload_rules() {
  const std::vector<Policy> reload = {Policy::full_reload, Policy::chunked};
  return {
      {.id = "offload-moments",
       .key = "precision.exp_avg",
       .policies = {Policy::full_reload, Policy::chunked, Policy::windowed},
       .find = require_plain_moments,
       .reason = "fp16 and fp8 moments are stored scaled, and a save reads the host bytes as they are",
       .source = "Megatron-LM pull request 6544 (c9eddcd3ae) and dev d48bd6be0a (#6244), "
                 "megatron/core/optimizer/optimizer_config.py"},
      {.id = "reload-held-masters-fp32",
       .key = "precision.master",
       .policies = reload,
       .find =
           [](const Situation& s, Findings& out) {
             const Precision& p = s.job.precision;
             if (p.optimizer_holds_masters() && p.master != Dtype::fp32)
               out.push_back({fmt::format("{} refuses a precision-aware optimizer that keeps {} master weights",
                                          name_of(*s.policy), name_of(p.master)),
                              "use master: fp32"});
           },
       .reason = "they are stored scaled, and a save reads the host bytes as they are",
       .source = kPull},
      {.id = "reload-held-masters-whole",
       .key = "precision.precision_aware",
       .policies = reload,
       .find =
           [](const Situation& s, Findings& out) {
             const Precision& p = s.job.precision;
             if (p.optimizer_holds_masters() && p.master == Dtype::fp32 && p.remainders.value_or(true))
               out.push_back(
                   {fmt::format(
                        "{} refuses a precision-aware optimizer that keeps the master weights itself, as 16-bit "
                        "remainders",
                        name_of(*s.policy)),
                    "use fp32 moments without precision_aware, an fp8 recipe tensorwise, blockwise or mxfp8, under "
                    "which Megatron keeps the masters, or windowed, which takes remainders",
                    s.job.precision.precision_aware          ? "precision.precision_aware"
                    : s.job.precision.exp_avg != Dtype::fp32 ? "precision.exp_avg"
                                                             : "precision.exp_avg_sq"});
           },
       .reason =
           "a save reads the host bytes as they are, and store_param_remainders cannot be turned off from the command "
           "line, so that this combination always fails there",
       .source = kPull},
  };
}

Rules windowed_rules() {
  return {
      {.id = "windowed-masters-fp32",
       .key = "precision.master",
       .policies = {Policy::windowed},
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.master != Dtype::fp32)
               out.push_back({"windowed takes fp32 main parameters only", "use master: fp32"});
           },
       .reason = "its master window is planned in fp32 or as remainders of fp32",
       .source = kDev},
      {.id = "windowed-checkpoint-format",
       .key = "checkpoint.format",
       .policies = {Policy::windowed},
       .find =
           [](const Situation& s, Findings& out) {
             const CheckpointSettings& c = s.job.checkpoint;
             const bool touches_state = c.save_optimizer || c.start == Start::resume;
             if (touches_state && c.format == CheckpointFormat::torch)
               out.push_back({"windowed saves and loads the optimizer as torch_dist only",
                              "set checkpoint.format: torch_dist, or save_optimizer: false and no resume"});
           },
       .reason = "other formats read the state's device tensors",
       .source = kDev},
  };
}

Rules cpu_adam_rules() {
  const std::vector<Policy> cpu_adam = {Policy::cpu_adam};
  return {
      {.id = "cpu-adam-kind",
       .key = "optimizer.kind",
       .policies = cpu_adam,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.optimizer.kind != OptimizerKind::adam)
               out.push_back({"cpu-adam steps AdamW only", "set optimizer.kind: adam"});
           },
       .reason = "the host runs AdamW, and the precision-aware path that it uses takes Adam only",
       .source = kHybrid},
      {.id = "cpu-adam-distributed",
       .key = "optimizer.distributed",
       .policies = cpu_adam,
       .find =
           [](const Situation& s, Findings& out) {
             if (!s.job.optimizer.distributed)
               out.push_back({"cpu-adam needs the distributed optimizer", "set optimizer.distributed: true"});
           },
       .reason = "the precision-aware path that it uses is distributed only",
       .source = kHybrid},
      {.id = "cpu-adam-precision-aware",
       .key = "precision.precision_aware",
       .policies = cpu_adam,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.precision_aware && !*s.job.precision.precision_aware)
               out.push_back({"cpu-adam needs --use-precision-aware-optimizer", "set it to true, or leave it out"});
           },
       .reason = "the hybrid optimizer reuses that path",
       .source = kHybrid},
      {.id = "cpu-adam-fp32-state",
       .key = "precision.exp_avg",
       .policies = cpu_adam,
       .find =
           [](const Situation& s, Findings& out) {
             const Precision& p = s.job.precision;
             if (p.exp_avg != Dtype::fp32 || p.exp_avg_sq != Dtype::fp32 || p.master != Dtype::fp32)
               out.push_back({"cpu-adam would change the numbers", "use fp32 for exp_avg, exp_avg_sq and master",
                              p.exp_avg != Dtype::fp32      ? "precision.exp_avg"
                              : p.exp_avg_sq != Dtype::fp32 ? "precision.exp_avg_sq"
                                                            : "precision.master"});
           },
       .reason = "Adam on the host keeps fp32 state whatever exp_avg, exp_avg_sq and master say",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py"},
      {.id = "cpu-adam-fp8-gather",
       .key = "precision.fp8.param_gather",
       .policies = cpu_adam,
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.fp8_param_gather && s.job.precision.fp8 != Fp8Recipe::delayed)
               out.push_back({"cpu-adam takes fp8 parameter gather with the delayed recipe only",
                              "set fp8.recipe: delayed, or leave fp8.param_gather out"});
           },
       .reason = "the other recipes quantise on the device from masters that are on the host",
       .source = kHybrid},
  };
}

}  // namespace

Rules offload_state_rules() {
  Rules rules = reload_rules();
  for (const Rules& more : {windowed_rules(), cpu_adam_rules()}) rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

}  // namespace ebb::rule_lists
