#include "models/schema/schema_settings.hpp"

#include "models/job_words.hpp"

namespace ebb::schema {

namespace {

Json optimizer_schema() {
  return object("The optimizer.",
                {{"kind", choice("Which (adam).", kOptimizers)},
                 {"distributed", boolean("--use-distributed-optimizer (true).")},
                 {"layer_wise", boolean("Muon's layer-wise distribution (false).")},
                 {"decoupled_lr", boolean("--decoupled-lr: embedding and output are a group of their own (false).")}});
}

Json activations_schema() {
  return object("What forward keeps.",
                {{"attention_dropout", yaml_ratio("Probability (0).", 0, 1)},
                 {"hidden_dropout", yaml_ratio("Probability (0).", 0, 1)},
                 {"cross_entropy", choice("Implementation of the loss (unfused).", kCrossEntropies)},
                 {"gradient_fusion", boolean("Weight gradients add up inside the matrix product (true).")},
                 {"bias_fusion", boolean("Bias and activation in one kernel (true).")},
                 {"rope_fusion", boolean("Rotary embedding in one kernel (true).")},
                 {"loader_mask", boolean("The data loader makes a causal mask (false).")},
                 {"deterministic", boolean("--deterministic-mode (false).")}});
}

Json experts_schema() {
  return object(
      "Routing of a mixture of experts.",
      {{"dispatcher", choice("--moe-token-dispatcher-type (alltoall).", kDispatchers)},
       {"capacity_factor", yaml_ratio("Tokens an expert takes at most, over the balanced number.", 0.01, 1000)},
       {"pad_to_capacity", boolean("--moe-pad-expert-input-to-capacity (false).")},
       {"imbalance", yaml_ratio("Tokens of the fullest rank over the mean (1).", 1, 1000)},
       {"grouped_matmul", boolean("--moe-grouped-gemm (true).")},
       {"permute_fusion", boolean("--moe-permute-fusion (true).")}});
}

Json checkpoint_schema() {
  return object("Checkpoints.", {{"format", choice("--ckpt-format (torch_dist).", kCheckpointFormats)},
                                 {"sharding", choice("How optimizer state is stored.", kCheckpointShardings)},
                                 {"async_save", boolean("--async-save (false).")},
                                 {"save_optimizer", boolean("Not --no-save-optim (true).")},
                                 {"start", choice("What the run starts from (fresh).", kStarts)}});
}

Json megatron_schema() {
  return object("Settings of Megatron-LM that offloading must get along with.",
                {{"cuda_graphs", choice("Which CUDA graphs (none).", kCudaGraphs)},
                 {"optimizer_cuda_graph", boolean("--optimizer-cuda-graph (false).")},
                 {"fsdp", boolean("--use-megatron-fsdp (false).")},
                 {"rl_offload_optimizer", boolean("--rl-offload-optimizer-during-inference (false).")},
                 {"optimizer_cpu_offload", boolean("--optimizer-cpu-offload beside the policy's flags (false).")},
                 {"expandable_segments", boolean("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (false).")},
                 {"empty_cache_level", yaml_count("--empty-unused-memory-level (0).", 0, 2)},
                 {"nccl_graph_register", boolean("NCCL_GRAPH_REGISTER is not 0 (true).")},
                 {"tensor_overlap", boolean("--tp-comm-overlap (false).")}});
}

}  // namespace

std::vector<Field> run_settings_fields() {
  return {{"optimizer", optimizer_schema()},
          {"activations", activations_schema()},
          {"experts", experts_schema()},
          {"checkpoint", checkpoint_schema()},
          {"megatron", megatron_schema()}};
}

}  // namespace ebb::schema
