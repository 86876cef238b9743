// Recomputation, CUDA graphs, checkpoints, Megatron-FSDP and the budgets.
#include <fmt/format.h>

#include "models/quantity_text.hpp"
#include "planner/rule_lists.hpp"

namespace ebb::rule_lists {

namespace {

constexpr std::string_view kFusedAdam =
    "Transformer Engine main d0067d0da6, transformer_engine/pytorch/optimizers/fused_adam.py, __init__";

void require_budget(Findings& out, const std::optional<Bytes>& budget, bool may_be_zero, Bytes most, const char* owner,
                    const std::string& cluster, const char* example) {
  if (!budget) return;
  if (budget->value < 0 || (budget->value == 0 && !may_be_zero))
    out.push_back(
        {may_be_zero ? "is negative" : "is not positive", fmt::format("use for example {}, or leave it out", example)});
  if (*budget > most)
    out.push_back(
        {fmt::format("{} is more than the {} of a {} of {}", format_bytes(*budget), format_bytes(most), owner, cluster),
         "use less, or leave it out"});
}

Rules recompute_rules() {
  return {
      {.id = "recompute-method",
       .key = "recompute.method",
       .find =
           [](const Situation& s, Findings& out) {
             const Recompute& r = s.job.recompute;
             if (r.granularity == RecomputeGranularity::full && r.method != "uniform" && r.method != "block")
               out.push_back(
                   {fmt::format("\"{}\" is no method of full recomputation", r.method), "use uniform or block"});
           },
       .reason = "",
       .source = kTransformerConfig},
      {.id = "recompute-layers",
       .key = "recompute.layers",
       .find =
           [](const Situation& s, Findings& out) {
             const Recompute& r = s.job.recompute;
             if (r.granularity == RecomputeGranularity::full && (r.layers < 1 || r.layers > s.job.model.layers))
               out.push_back({fmt::format("{} is outside the model's layers", r.layers),
                              fmt::format("use 1 to {}", s.job.model.layers)});
           },
       .reason = "",
       .source = kTransformerConfig},
  };
}

Rules graph_rules() {
  return {
      {.id = "graphs-without-full-recompute",
       .key = "megatron.cuda_graphs",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.megatron.cuda_graphs != CudaGraphs::none &&
                 s.job.recompute.granularity == RecomputeGranularity::full)
               out.push_back({"does not go with full recomputation",
                              "use recompute.granularity: selective or none, or cuda_graphs: none"});
           },
       .reason = "a captured layer cannot be run again by the checkpoint around it",
       .source = kArguments},
      {.id = "graphs-without-expandable-segments",
       .key = "megatron.expandable_segments",
       .find =
           [](const Situation& s, Findings& out) {
             const RuntimeSettings& m = s.job.megatron;
             if (m.cuda_graphs != CudaGraphs::none && m.expandable_segments && m.nccl_graph_register)
               out.push_back({"does not go with CUDA graphs while NCCL registers their buffers",
                              "set NCCL_GRAPH_REGISTER=0 (nccl_graph_register: false), or leave it out"});
           },
       .reason = "with some parallel settings the run crashes with illegal memory accesses",
       .source = kArguments},
      {.id = "optimizer-graph-fp32-state",
       .key = "megatron.optimizer_cuda_graph",
       .find =
           [](const Situation& s, Findings& out) {
             const Precision& p = s.job.precision;
             const bool fp32 = p.exp_avg == Dtype::fp32 && p.exp_avg_sq == Dtype::fp32 && p.master == Dtype::fp32;
             if (s.job.megatron.optimizer_cuda_graph && (!fp32 || p.keeps_remainders()))
               out.push_back({"needs fp32 moments and whole fp32 master weights",
                              "use fp32 state without the precision-aware optimizer, or leave it out"});
           },
       .reason = "other state is converted for the step in temporaries, whose pointers a captured graph cannot follow",
       .source = kFusedAdam},
  };
}

Rules checkpoint_rules() {
  return {
      {.id = "async-save-format",
       .key = "checkpoint.async_save",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.checkpoint.async_save && s.job.checkpoint.format == CheckpointFormat::torch)
               out.push_back({"needs a distributed checkpoint format", "set checkpoint.format: torch_dist"});
           },
       .reason = "the torch format is written by the training process itself",
       .source = "Megatron-LM main d98e8a64dd, megatron/training/checkpointing.py, save_checkpoint"},
      {.id = "fsdp-format",
       .key = "checkpoint.format",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.megatron.fsdp && s.job.checkpoint.format != CheckpointFormat::fsdp_dtensor)
               out.push_back({"Megatron-FSDP saves fsdp_dtensor only", "set checkpoint.format: fsdp_dtensor"});
           },
       .reason = "",
       .source = kArguments},
      {.id = "fsdp-dtensor-needs-fsdp",
       .key = "checkpoint.format",
       .find =
           [](const Situation& s, Findings& out) {
             if (!s.job.megatron.fsdp && s.job.checkpoint.format == CheckpointFormat::fsdp_dtensor)
               out.push_back({"fsdp_dtensor needs Megatron-FSDP", "set checkpoint.format: torch_dist"});
           },
       .reason = "",
       .source = kArguments},
  };
}

Rules loss_rules() {
  return {
      {.id = "deterministic-loss",
       .key = "activations.cross_entropy",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.activations.deterministic && s.job.activations.cross_entropy != CrossEntropy::unfused)
               out.push_back({"the fused loss is not deterministic", "use unfused, or set deterministic: false"});
           },
       .reason = "",
       .source = kArguments},
  };
}

Rules budget_rules() {
  return {
      {.id = "budget-device",
       .key = "budget.device",
       .find =
           [](const Situation& s, Findings& out) {
             require_budget(out, s.job.budget.device, false, s.job.cluster.gpu.memory.value, "GPU", s.job.cluster.name,
                            "130GiB");
           },
       .reason = "",
       .source = "Ebb: the cluster's gpu.memory"},
      {.id = "budget-host",
       .key = "budget.host",
       .find =
           [](const Situation& s, Findings& out) {
             require_budget(out, s.job.budget.host, true, s.job.cluster.host.memory.value, "host", s.job.cluster.name,
                            "1800GiB");
           },
       .reason = "",
       .source = "Ebb: the cluster's host.memory"},
  };
}

}  // namespace

Rules run_rules() {
  Rules rules = recompute_rules();
  for (const Rules& more : {graph_rules(), checkpoint_rules(), loss_rules(), budget_rules()})
    rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

}  // namespace ebb::rule_lists
