// How a job runs beyond its sizes: optimizer, what forward keeps, routing of experts, checkpoints, and the settings of
// Megatron-LM that offloading must get along with. Each struct is a block of the job file; defaults are Ebb's, chosen
// as most large runs set them (an imported job states Megatron's own).
#pragma once

#include <cstdint>
#include <optional>

namespace ebb {

enum class OptimizerKind : std::uint8_t { adam, muon, lion, sgd };

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::adam;
  bool distributed = true;  // --use-distributed-optimizer; false: every rank holds all state (18 B a parameter)
  bool layer_wise = false;  // Muon's layer-wise distribution: whole parameters on ranks; with `distributed` in buffers
                            // laid out for that (--use-layer-wise-param-layout)
  bool decoupled_lr = false;  // --decoupled-lr: embedding and output are a parameter group of their own

  bool operator==(const OptimizerSettings&) const = default;
};

enum class CrossEntropy : std::uint8_t {
  unfused,  // Megatron's vocabulary-parallel loss, step by step
  native,   // --cross-entropy-loss-fusion
  te,       // ... --cross-entropy-fusion-impl te
};

struct ActivationSettings {
  double attention_dropout = 0;
  double hidden_dropout = 0;
  CrossEntropy cross_entropy = CrossEntropy::unfused;
  bool gradient_fusion = true;  // weight gradients add up inside the matrix product
  bool bias_fusion = true;      // bias and activation in one kernel
  bool rope_fusion = true;
  bool loader_mask = false;    // the data loader makes a causal mask, a byte an element
  bool deterministic = false;  // --deterministic-mode

  bool operator==(const ActivationSettings&) const = default;
};

enum class Dispatcher : std::uint8_t { allgather, alltoall, flex };

/// Routing of a mixture of experts.
struct RoutingSettings {
  Dispatcher dispatcher = Dispatcher::alltoall;
  std::optional<double> capacity_factor;  // tokens an expert takes at most, over the balanced number
  bool pad_to_capacity = false;
  double imbalance = 1.0;  // tokens of the fullest rank over the mean; the capacity factor limits it
  bool grouped_matmul = true;
  bool permute_fusion = true;

  bool operator==(const RoutingSettings&) const = default;
};

enum class CheckpointFormat : std::uint8_t { torch, torch_dist, fsdp_dtensor };
enum class CheckpointSharding : std::uint8_t { dp_reshardable, fully_reshardable };
enum class Start : std::uint8_t {
  fresh,
  resume,         // parameters and optimizer state
  no_load_optim,  // --no-load-optim
  finetune,       // --finetune
};

struct CheckpointSettings {
  CheckpointFormat format = CheckpointFormat::torch_dist;
  CheckpointSharding sharding = CheckpointSharding::dp_reshardable;
  bool async_save = false;
  bool save_optimizer = true;
  Start start = Start::fresh;

  bool operator==(const CheckpointSettings&) const = default;
};

enum class CudaGraphs : std::uint8_t { none, local, transformer_engine, full_iteration };

struct RuntimeSettings {
  CudaGraphs cuda_graphs = CudaGraphs::none;
  bool optimizer_cuda_graph = false;
  bool fsdp = false;                   // --use-megatron-fsdp
  bool rl_offload_optimizer = false;   // --rl-offload-optimizer-during-inference
  bool optimizer_cpu_offload = false;  // --optimizer-cpu-offload stands beside the flags of the policy
  bool expandable_segments = false;    // PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
  std::int64_t empty_cache_level = 0;  // --empty-unused-memory-level
  bool nccl_graph_register = true;     // NCCL_GRAPH_REGISTER, unless it is 0
  bool tensor_overlap = false;         // --tp-comm-overlap: Transformer Engine's user buffers

  bool operator==(const RuntimeSettings&) const = default;
};

}  // namespace ebb
