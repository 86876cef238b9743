// Breakers of the rules of policies.
#include "tests/planner/rule_breakers.hpp"

namespace ebb::test {

std::vector<Breaker> offload_breakers() {
  return {
      {"offload-values", [](Job& j) { j.offload.fraction = 1.5; }},
      {"offload-values",
       [](Job& j) {
         j.offload.policy = Policy::chunked;
         j.offload.slots = 2;
       },
       {Policy::chunked}},
      {"offload-values", [](Job& j) { j.offload.chunk_numel = Numel{0}; }},
      {"offload-values", [](Job& j) { j.offload.chunk_size_mb = -1; }},
      {"offload-values", [](Job& j) { j.offload.slots = 1; }},
      {"policy-of-megatron",
       [](Job&) {},
       {Policy::full_reload, Policy::chunked, Policy::pipelined, Policy::tidal},
       Megatron::dev},
      {"policy-of-megatron", [](Job&) {}, {Policy::windowed, Policy::pipelined, Policy::tidal}, Megatron::pr6544},
      {"policy-of-megatron", [](Job&) {}, kStateOffload, Megatron::main},
      {"fp32-params-resident",
       [](Job& j) { j.precision.params = Dtype::fp32; },
       {Policy::full_reload, Policy::chunked, Policy::windowed, Policy::cpu_adam, Policy::pipelined, Policy::tidal}},
      {"fsdp-not-planned",
       [](Job& j) {
         j.megatron.fsdp = true;
         j.checkpoint.format = CheckpointFormat::fsdp_dtensor;
       },
       {Policy::resident, Policy::cpu_adam, Policy::pipelined, Policy::tidal}},
      {"own-adam", [](Job& j) { j.optimizer.kind = OptimizerKind::lion; }, {Policy::pipelined, Policy::tidal}},
      {"reload-adam", [](Job& j) { j.optimizer.kind = OptimizerKind::sgd; }, kReload},
      {"reload-distributed", undistribute, kReload},
      {"windowed-optimizer", [](Job& j) { j.optimizer.kind = OptimizerKind::lion; }, {Policy::windowed}},
      {"windowed-optimizer", undistribute, {Policy::windowed}},
      {"windowed-optimizer",
       [](Job& j) {
         j.optimizer.kind = OptimizerKind::muon;
         j.optimizer.layer_wise = true;  // beside buffers that are laid out for it
       },
       {Policy::windowed}},
      {"windowed-muon-bf16",
       [](Job& j) {
         undistribute(j);
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

}  // namespace ebb::test
