// Source of the names: Megatron-LM main (megatron/training/arguments.py and the dataclasses that it makes arguments
// of), dev for the chunked offload, and pull request 6544.
#include "planner/megatron_known.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "models/nearest.hpp"
#include "planner/megatron_ignored.hpp"

namespace ebb {

namespace {

struct Row {
  std::string_view name, about;
};

// Name and the key of the job that it decides.
constexpr Row kUsed[] = {
    // Model.
    {"num-layers", "model.layers"},
    {"encoder-num-layers", "model.layers"},
    {"hidden-size", "model.hidden"},
    {"ffn-hidden-size", "model.ffn"},
    {"num-attention-heads", "model.heads"},
    {"group-query-attention", "model.kv_heads"},
    {"num-query-groups", "model.kv_heads"},
    {"kv-channels", "model.head_dim"},
    {"vocab-size", "model.vocab"},
    {"padded-vocab-size", "model.vocab"},
    {"tokenizer-type", ""},
    {"make-vocab-size-divisible-by", "model.vocab_divisible_by"},
    {"position-embedding-type", "model.positions"},
    {"use-rotary-position-embeddings", "model.positions"},
    {"no-position-embedding", "model.positions"},
    {"max-position-embeddings", "model.max_positions"},
    {"untie-embeddings-and-output-weights", "model.tied_embeddings"},
    {"swiglu", "model.gated"},
    {"quick-geglu", "model.gated"},
    {"squared-relu", "model.gated"},
    {"disable-bias-linear", "model.bias"},
    {"add-qkv-bias", "model.qkv_bias"},
    {"normalization", "model.norm"},
    {"qk-layernorm", "model.qk_norm"},
    {"softmax-type", "model.attention_sinks"},
    {"multi-latent-attention", "model.mla"},
    {"q-lora-rank", "model.mla.q_lora_rank"},
    {"kv-lora-rank", "model.mla.kv_lora_rank"},
    {"qk-head-dim", "model.mla.qk_head_dim"},
    {"qk-pos-emb-head-dim", "model.mla.qk_rope_head_dim"},
    {"v-head-dim", "model.mla.v_head_dim"},
    {"num-experts", "model.moe.experts"},
    {"moe-router-topk", "model.moe.top_k"},
    {"moe-layer-freq", "model.moe.layer_freq"},
    {"moe-ffn-hidden-size", "model.moe.ffn"},
    {"moe-shared-expert-intermediate-size", "model.moe.shared_ffn"},
    {"moe-shared-expert-gate", "model.moe.shared_gate"},
    {"moe-latent-size", "model.moe.latent"},
    {"mtp-num-layers", "model.mtp.layers"},
    // Parallel sizes.
    {"tensor-model-parallel-size", "parallel.tensor"},
    {"pipeline-model-parallel-size", "parallel.pipeline"},
    {"num-layers-per-virtual-pipeline-stage", "parallel.virtual_pipeline"},
    {"num-virtual-stages-per-pipeline-rank", "parallel.virtual_pipeline"},
    {"context-parallel-size", "parallel.context"},
    {"expert-model-parallel-size", "parallel.expert"},
    {"expert-tensor-parallel-size", "parallel.expert_tensor"},
    {"sequence-parallel", "parallel.sequence"},
    {"num-distributed-optimizer-instances", "parallel.optimizer_instances"},
    {"overlap-grad-reduce", "parallel.overlap_grad_reduce"},
    {"overlap-param-gather", "parallel.overlap_param_gather"},
    {"overlap-param-gather-with-optimizer-step", "parallel.gather_with_step"},
    {"pipeline-model-parallel-layout", "parallel.pipeline_layout"},
    {"decoder-first-pipeline-num-layers", "parallel.first_stage_layers"},
    {"decoder-last-pipeline-num-layers", "parallel.last_stage_layers"},
    {"account-for-embedding-in-pipeline-split", "parallel.account_for_embedding"},
    {"account-for-loss-in-pipeline-split", "parallel.account_for_loss"},
    {"microbatch-group-size-per-virtual-pipeline-stage", "parallel.micro_batch_group"},
    {"use-tp-pp-dp-mapping", "parallel.pipeline_inner"},
    {"ddp-bucket-size", "parallel.bucket_numel"},
    {"ddp-num-buckets", "parallel.bucket_numel"},
    {"ddp-pad-buckets-for-high-nccl-busbw", "parallel.pad_buckets"},
    // Batch.
    {"micro-batch-size", "batch.micro"},
    {"global-batch-size", "batch.global"},
    {"step-batch-size-schedule", "batch.global"},
    {"rampup-batch-size", ""},
    {"seq-length", "batch.sequence"},
    {"encoder-seq-length", "batch.sequence"},
    // Precision.
    {"bf16", "precision.params"},
    {"fp16", "precision.params"},
    {"grad-reduce-in-bf16", "precision.grads"},
    {"accumulate-allreduce-grads-in-fp32", "precision.grads"},
    {"main-grads-dtype", "precision.grads"},
    {"main-params-dtype", "precision.master"},
    {"exp-avg-dtype", "precision.exp_avg"},
    {"exp-avg-sq-dtype", "precision.exp_avg_sq"},
    {"use-precision-aware-optimizer", "precision.precision_aware"},
    {"fp8-format", "precision.fp8.recipe"},
    {"fp8-recipe", "precision.fp8.recipe"},
    {"fp8-param-gather", "precision.fp8.param_gather"},
    {"reuse-grad-buf-for-mxfp8-param-ag", "precision.fp8.reuse_grad_buffer"},
    {"first-last-layers-bf16", "precision.fp8.first_bf16_layers"},
    {"num-layers-at-start-in-bf16", "precision.fp8.first_bf16_layers"},
    {"num-layers-at-end-in-bf16", "precision.fp8.last_bf16_layers"},
    {"fp4-format", "precision.fp4.recipe"},
    {"fp4-recipe", "precision.fp4.recipe"},
    {"fp4-param-gather", "precision.fp4.param_gather"},
    // Recomputation.
    {"recompute-activations", "recompute.granularity"},
    {"recompute-granularity", "recompute.granularity"},
    {"recompute-method", "recompute.method"},
    {"recompute-num-layers", "recompute.layers"},
    {"recompute-modules", "recompute.modules"},
    {"moe-layer-recompute", "recompute.modules"},
    // Offloading.
    {"offload-optimizer-states", "offload.policy"},
    {"offload-optimizer-states-chunk-numel", "offload.chunk_numel"},
    {"chunked-optimizer-state-offload", "offload.policy"},
    {"optimizer-state-offload-chunk-size-mb", "offload.chunk_size_mb"},
    {"optimizer-state-offload-fraction", "offload.fraction"},
    {"optimizer-cpu-offload", "offload.policy"},
    {"optimizer-offload-fraction", "offload.fraction"},
    // Optimizer, kernels, loss.
    {"optimizer", "optimizer.kind"},
    {"use-distributed-optimizer", "optimizer.distributed"},
    {"decoupled-lr", "optimizer.decoupled_lr"},
    {"transformer-impl", "compute.attention"},
    {"attention-backend", "compute.attention"},
    {"attention-dropout", "activations.attention_dropout"},
    {"hidden-dropout", "activations.hidden_dropout"},
    {"cross-entropy-loss-fusion", "activations.cross_entropy"},
    {"cross-entropy-fusion-impl", "activations.cross_entropy"},
    {"no-gradient-accumulation-fusion", "activations.gradient_fusion"},
    {"no-bias-gelu-fusion", "activations.bias_fusion"},
    {"no-bias-swiglu-fusion", "activations.bias_fusion"},
    {"no-rope-fusion", "activations.rope_fusion"},
    {"no-create-attention-mask-in-dataloader", "activations.loader_mask"},
    {"deterministic-mode", "activations.deterministic"},
    // Experts.
    {"moe-token-dispatcher-type", "experts.dispatcher"},
    {"moe-expert-capacity-factor", "experts.capacity_factor"},
    {"moe-pad-expert-input-to-capacity", "experts.pad_to_capacity"},
    {"moe-grouped-gemm", "experts.grouped_matmul"},
    {"moe-permute-fusion", "experts.permute_fusion"},
    // Checkpoints.
    {"load", "checkpoint.start"},
    {"pretrained-checkpoint", "checkpoint.start"},
    {"finetune", "checkpoint.start"},
    {"no-load-optim", "checkpoint.start"},
    {"no-save-optim", "checkpoint.save_optimizer"},
    {"ckpt-format", "checkpoint.format"},
    {"async-save", "checkpoint.async_save"},
    {"dist-ckpt-optim-fully-reshardable", "checkpoint.sharding"},
    // Runtime.
    {"cuda-graph-impl", "megatron.cuda_graphs"},
    {"cuda-graph-scope", "megatron.cuda_graphs"},
    {"enable-cuda-graph", "megatron.cuda_graphs"},
    {"external-cuda-graph", "megatron.cuda_graphs"},
    {"optimizer-cuda-graph", "megatron.optimizer_cuda_graph"},
    {"use-megatron-fsdp", "megatron.fsdp"},
    {"use-custom-fsdp", "megatron.fsdp"},
    {"rl-offload-optimizer-during-inference", "megatron.rl_offload_optimizer"},
    {"empty-unused-memory-level", "megatron.empty_cache_level"},
};

// Name and what Ebb leaves out.
constexpr Row kNotModelled[] = {
    {"hybrid-layer-pattern", "Mamba and hybrid layers: all are taken as attention with a feed-forward block"},
    {"hybrid-override-pattern", "Mamba and hybrid layers: all are taken as attention with a feed-forward block"},
    {"hybrid-attention-ratio", "Mamba and hybrid layers: all are taken as attention with a feed-forward block"},
    {"hybrid-mlp-ratio", "Mamba and hybrid layers: all are taken as attention with a feed-forward block"},
    {"is-hybrid-model", "Mamba and hybrid layers: all are taken as attention with a feed-forward block"},
    {"mamba-state-dim", "Mamba layers"},
    {"mamba-head-dim", "Mamba layers"},
    {"mamba-num-groups", "Mamba layers"},
    {"mamba-num-heads", "Mamba layers"},
    {"experimental-attention-variant", "attention variants other than grouped-query and latent"},
    {"linear-attention-freq", "linear attention"},
    {"heterogeneous-layers-config-path", "layers of different shapes"},
    {"heterogeneous-layers-config-encoded-json", "layers of different shapes"},
    {"spec", "a layer specification of its own"},
    {"attention-output-gate", "the gate's part of the query projection"},
    {"enable-hyper-connections", "hyper-connections"},
    {"decoder-num-layers", "encoder-decoder models"},
    {"retro-add-retriever", "a retriever"},
    {"use-legacy-models", "the legacy models' layers"},
    {"window-size", "attention windows (computation only)"},
    {"window-attn-skip-freq", "attention windows (computation only)"},
    {"fp32-residual-connection", "residual streams of fp32"},
    {"fine-grained-activation-offloading", "activations that go to the host"},
    {"offload-modules", "activations that go to the host"},
    {"delay-offload-until-cuda-graph", "activations that go to the host"},
    {"cpu-offloading-num-layers", "activations that go to the host"},
    {"distribute-saved-activations", "checkpointed activations spread over tensor-parallel ranks"},
    {"tp-comm-overlap", "buffers of the overlap of tensor-parallel communication, and what it saves in time"},
    {"gtp-weight-remat-size", "generalized tensor parallelism"},
    {"hierarchical-context-parallel-sizes", "hierarchical context parallelism"},
    {"hybrid-context-parallel", "hybrid context parallelism"},
    {"use-torch-fsdp2", "PyTorch's FSDP2"},
    {"data-parallel-sharding-strategy", "Megatron-FSDP's sharding"},
    {"fsdp-double-buffer", "Megatron-FSDP's buffers"},
    {"use-nccl-ub", "buffers registered with NCCL"},
    {"nccl-ub", "buffers registered with NCCL"},
    {"ddp-reduce-scatter-with-fp32-accumulation", "the reduction's extra tensor of a bucket's size"},
    {"overlap-moe-expert-parallel-comm", "overlap of expert communication, and the micro-batch more that it keeps"},
    {"delay-wgrad-compute", "weight gradients that wait"},
    {"defer-embedding-wgrad-compute", "inputs that the output layer's weight gradient waits with"},
    {"wgrad-deferral-limit", "inputs that the output layer's weight gradient waits with"},
    {"moe-paged-stash", "routed activations in pages, on the GPU and the host"},
    {"moe-paged-stash-page-size", "routed activations in pages, on the GPU and the host"},
    {"moe-paged-stash-buffer-size-factor-cuda", "routed activations in pages, on the GPU and the host"},
    {"moe-paged-stash-buffer-size-factor-cpu", "routed activations in pages, on the GPU and the host"},
    {"moe-expert-rank-capacity-factor", "a limit to the tokens of all experts of a rank"},
    {"moe-shared-expert-overlap", "overlap of shared experts with dispatch"},
    {"moe-single-grouped-weight", "one parameter for all experts of a layer"},
    {"moe-use-legacy-grouped-gemm", "the legacy experts"},
    {"moe-extended-tp", "an old form of expert tensor parallelism"},
    {"moe-use-upcycling", "making experts of a dense checkpoint"},
    {"moe-router-padding-for-fp8", "tokens padded for FP8"},
    {"moe-router-padding-for-quantization", "tokens padded for FP8"},
    {"overlap-cpu-optimizer-d2h-h2d", "an Adam on the host for every parameter, overlapped with its copies"},
    {"use-torch-optimizer-for-cpu-offload", "PyTorch's Adam on the GPU beside the host's"},
    {"no-pin-cpu-grads", "host gradients that are not pinned"},
    {"no-pin-cpu-params", "host parameters that are not pinned"},
    {"no-use-layer-wise-param-layout", "which ranks own which of Muon's parameters"},
    {"perform-rl-step", "rollouts and what they keep in memory"},
    {"rl-offload-kv-cache-during-training", "rollouts and what they keep in memory"},
    {"rl-use-sequence-packing", "packed rollouts"},
    {"use-checkpoint-args", "arguments that the checkpoint holds"},
    {"use-mp-args-from-checkpoint-args", "arguments that the checkpoint holds"},
    {"yaml-cfg", "arguments in a file of their own"},
    {"non-persistent-ckpt-type", "non-persistent checkpoints"},
    {"dist-ckpt-save-pre-mcore-014", "an older checkpoint format"},
    {"no-ckpt-fully-parallel-save", "checkpoints that one data-parallel rank writes"},
    {"distrib-optim-fully-reshardable-mem-efficient", "the save with less memory"},
    {"fp8-wgrad", "weight gradients in higher precision"},
    {"no-fp8-wgrad", "weight gradients in higher precision"},
    {"kitchen-config-file", "other quantisation recipes"},
    {"kitchen-recipe-number", "other quantisation recipes"},
    {"freeze-LM", "frozen parameters"},
    {"freeze-ViT", "frozen parameters"},
    {"vision-pretraining", "vision models"},
};

const Row* find_row(std::span<const Row> rows, std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::optional<KnownArgument> known_argument(std::string_view name) {
  if (const Row* row = find_row(kUsed, name)) return KnownArgument{ArgumentUse::used, row->about};
  if (const Row* row = find_row(kNotModelled, name)) return KnownArgument{ArgumentUse::not_modelled, row->about};
  if (is_ignored_argument(name)) return KnownArgument{ArgumentUse::ignored, ""};
  return std::nullopt;
}

std::string nearest_argument(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Row& row : kUsed) names.push_back(row.name);
  for (const Row& row : kNotModelled) names.push_back(row.name);
  for (const std::string_view ignored : ignored_arguments()) names.push_back(ignored);
  return nearest(name, names);
}

}  // namespace ebb
