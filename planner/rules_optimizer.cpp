// The optimizer, how its state is spread, and what its communication overlaps with.
#include <fmt/format.h>

#include "planner/rule_lists.hpp"

namespace ebb::rule_lists {

namespace {

constexpr std::string_view kDdp = "Megatron-LM main d98e8a64dd, megatron/core/distributed/distributed_data_parallel.py";

Rules instance_rules() {
  return {
      {.id = "instances-dense",
       .key = "parallel.optimizer_instances",
       .find =
           [](const Situation& s, Findings& out) {
             const Parallel& p = s.job.parallel;
             require_divisor(out, p.optimizer_instances, p.data() * p.context, "ranks of data x context parallelism");
           },
       .reason = "an instance is an equal part of the ranks that share the optimizer",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/parallel_state.py:927-990",
       .after = {"world-dense"}},
      {.id = "instances-expert",
       .key = "parallel.optimizer_instances",
       .find =
           [](const Situation& s, Findings& out) {
             const Parallel& p = s.job.parallel;
             if (s.job.model.moe)
               require_divisor(out, p.optimizer_instances, p.expert_data(), "ranks of expert data parallelism");
           },
       .reason = "an instance is an equal part of the ranks that share the experts' optimizer",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/parallel_state.py:927-990",
       .after = {"world-expert"}},
      {.id = "instances-need-distributed",
       .key = "parallel.optimizer_instances",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.parallel.optimizer_instances > 1 && !s.job.optimizer.distributed)
               out.push_back({"needs the distributed optimizer", "set optimizer_instances: 1"});
           },
       .reason = "without it every rank holds all state anyway",
       .source = kDdp},
      {.id = "bucket-size",
       .key = "parallel.bucket_numel",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.parallel.bucket_numel && s.job.parallel.bucket_numel->value < 1)
               out.push_back({"is not positive", "use 40000000 or leave it out"});
           },
       .reason = "",
       .source = kDdp},
  };
}

Rules overlap_rules() {
  return {
      {.id = "gather-needs-reduce",
       .key = "parallel.overlap_param_gather",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.parallel.overlap_param_gather && !s.job.parallel.overlap_grad_reduce)
               out.push_back(
                   {"needs overlap_grad_reduce", "set overlap_grad_reduce: true or overlap_param_gather: false"});
           },
       .reason = "both use the buckets that overlapped reduction makes",
       .source = kArguments},
      {.id = "gather-needs-distributed",
       .key = "parallel.overlap_param_gather",
       .find =
           [](const Situation& s, Findings& out) {
             const OptimizerSettings& o = s.job.optimizer;
             const bool gathers = o.distributed || o.layer_wise || s.job.megatron.fsdp;
             if (s.job.parallel.overlap_param_gather && !gathers)
               out.push_back({"needs the distributed optimizer", "set overlap_param_gather: false"});
           },
       .reason = "without it every rank updates all parameters, and there is nothing to gather",
       .source = kArguments},
      {.id = "gather-with-step-overlaps",
       .key = "parallel.gather_with_step",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.parallel.gather_with_step && !s.job.parallel.overlap_param_gather)
               out.push_back({"needs overlap_param_gather", "set overlap_param_gather: true or leave it out"});
           },
       .reason = "",
       .source = kArguments},
      {.id = "gather-with-step-interleaved",
       .key = "parallel.gather_with_step",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.parallel.gather_with_step && s.job.parallel.virtual_pipeline == 1)
               out.push_back({"needs virtual_pipeline > 1", "interleave the pipeline or leave it out"});
           },
       .reason = "the first model chunk's parameters are gathered while the others are stepped",
       .source = kArguments},
  };
}

Rules kind_rules() {
  return {
      {.id = "layer-wise-muon",
       .key = "optimizer.layer_wise",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.optimizer.layer_wise && s.job.optimizer.kind != OptimizerKind::muon)
               out.push_back({"distributes whole parameters, which only Muon asks for",
                              "set optimizer.kind: muon or leave layer_wise out"});
           },
       .reason = "",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/optimizer/layer_wise_optimizer.py"},
      {.id = "muon-whole-matrices",
       .key = "optimizer.kind",
       .find =
           [](const Situation& s, Findings& out) {
             const OptimizerSettings& o = s.job.optimizer;
             if (o.kind == OptimizerKind::muon && o.distributed && !o.layer_wise)
               out.push_back({"Muon does not go with the distributed optimizer",
                              "set optimizer.layer_wise: true, or optimizer.distributed: false"});
           },
       .reason = "it steps whole matrices, which the distributed optimizer cuts over the ranks",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/optimizer/layer_wise_optimizer.py"},
      {.id = "muon-without-fsdp",
       .key = "optimizer.kind",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.optimizer.kind == OptimizerKind::muon && s.job.megatron.fsdp)
               out.push_back({"Muon does not go with Megatron-FSDP", "use adam, or set megatron.fsdp: false"});
           },
       .reason = "Muon steps whole matrices, which FSDP cuts",
       .source = kArguments},
      {.id = "precision-aware-adam",
       .key = "optimizer.kind",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.is_precision_aware() && s.job.optimizer.kind != OptimizerKind::adam)
               out.push_back({"the precision-aware optimizer is Adam only",
                              "use adam, or fp32 for exp_avg, exp_avg_sq and master"});
           },
       .reason = "",
       .source = kOptimizerConfig},
      {.id = "precision-aware-distributed",
       .key = "optimizer.distributed",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.precision.is_precision_aware() && !s.job.optimizer.distributed)
               out.push_back({"the precision-aware optimizer is distributed only",
                              "set distributed: true, or use fp32 for exp_avg, exp_avg_sq and master"});
           },
       .reason = "",
       .source = kOptimizerConfig},
  };
}

}  // namespace

Rules optimizer_rules() {
  Rules rules = instance_rules();
  for (const Rules& more : {overlap_rules(), kind_rules()}) rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

}  // namespace ebb::rule_lists
