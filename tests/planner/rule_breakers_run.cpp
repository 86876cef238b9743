// Breakers of the rules of optimizer, precision and run.
#include "tests/planner/rule_breakers.hpp"

namespace ebb::test {

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
      {"muon-whole-matrices", [](Job& j) { j.optimizer.kind = OptimizerKind::muon; }},
      {"muon-without-fsdp",
       [](Job& j) {
         j.optimizer.kind = OptimizerKind::muon;
         j.optimizer.layer_wise = true;
         j.megatron.fsdp = true;
         j.checkpoint.format = CheckpointFormat::fsdp_dtensor;
       }},
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
      {"deterministic-loss",
       [](Job& j) {
         j.activations.deterministic = true;
         j.activations.cross_entropy = CrossEntropy::te;
       }},
      {"budget-device", [](Job& j) { j.budget.device = Bytes{0}; }},
      {"budget-host", [](Job& j) { j.budget.host = Bytes{j.cluster.host.memory.value.value + 1}; }},
      {"budget-host", [](Job& j) { j.budget.host = Bytes{-1}; }},
  };
}

}  // namespace ebb::test
