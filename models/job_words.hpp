// The words of a job file and what they stand for, shared by its reader and its writer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/job.hpp"
#include "models/yaml_fields.hpp"

namespace ebb {

// What Megatron accepts: --bf16/--fp16, --main-grads-dtype, --exp-avg-dtype, --main-params-dtype.
inline constexpr Choice<Dtype> kParamTypes[] = {{"bf16", Dtype::bf16}, {"fp16", Dtype::fp16}, {"fp32", Dtype::fp32}};
inline constexpr Choice<Dtype> kGradTypes[] = {{"fp32", Dtype::fp32}, {"bf16", Dtype::bf16}, {"fp16", Dtype::fp16}};
inline constexpr Choice<Dtype> kMomentTypes[] = {
    {"fp32", Dtype::fp32}, {"bf16", Dtype::bf16}, {"fp16", Dtype::fp16}, {"fp8", Dtype::fp8}};
inline constexpr Choice<Dtype> kMasterTypes[] = {{"fp32", Dtype::fp32}, {"fp16", Dtype::fp16}};

inline constexpr Choice<Fp8Recipe> kFp8Recipes[] = {{"none", Fp8Recipe::none},
                                                    {"delayed", Fp8Recipe::delayed},
                                                    {"tensorwise", Fp8Recipe::tensorwise},
                                                    {"blockwise", Fp8Recipe::blockwise},
                                                    {"mxfp8", Fp8Recipe::mxfp8}};
inline constexpr Choice<RecomputeGranularity> kGranularities[] = {{"none", RecomputeGranularity::none},
                                                                  {"selective", RecomputeGranularity::selective},
                                                                  {"full", RecomputeGranularity::full}};
inline const Choice<std::string> kRecomputeMethods[] = {{"uniform", "uniform"}, {"block", "block"}};
inline constexpr std::string_view kRecomputeModules[] = {"core_attn", "moe_act", "layernorm",     "mla_up_proj",
                                                         "mlp",       "moe",     "shared_experts"};
inline constexpr Choice<Attention> kAttentions[] = {
    {"flash", Attention::flash}, {"unfused", Attention::unfused}, {"local", Attention::local}};
inline constexpr Choice<AdamKernel> kAdamKernels[] = {{"fused", AdamKernel::fused}, {"foreach", AdamKernel::foreach}};

inline constexpr Choice<Fp4Recipe> kFp4Recipes[] = {{"none", Fp4Recipe::none}, {"nvfp4", Fp4Recipe::nvfp4}};
inline constexpr Choice<Columnwise> kColumnwise[] = {
    {"auto", Columnwise::automatic}, {"eager", Columnwise::eager}, {"lazy", Columnwise::lazy}};
inline constexpr Choice<OptimizerKind> kOptimizers[] = {{"adam", OptimizerKind::adam},
                                                        {"muon", OptimizerKind::muon},
                                                        {"lion", OptimizerKind::lion},
                                                        {"sgd", OptimizerKind::sgd}};
inline constexpr Choice<CrossEntropy> kCrossEntropies[] = {
    {"unfused", CrossEntropy::unfused}, {"native", CrossEntropy::native}, {"te", CrossEntropy::te}};
inline constexpr Choice<Dispatcher> kDispatchers[] = {
    {"allgather", Dispatcher::allgather}, {"alltoall", Dispatcher::alltoall}, {"flex", Dispatcher::flex}};
inline constexpr Choice<CheckpointFormat> kCheckpointFormats[] = {{"torch", CheckpointFormat::torch},
                                                                  {"torch_dist", CheckpointFormat::torch_dist},
                                                                  {"fsdp_dtensor", CheckpointFormat::fsdp_dtensor}};
inline constexpr Choice<CheckpointSharding> kCheckpointShardings[] = {
    {"dp_reshardable", CheckpointSharding::dp_reshardable},
    {"fully_reshardable", CheckpointSharding::fully_reshardable}};
inline constexpr Choice<Start> kStarts[] = {{"fresh", Start::fresh},
                                            {"resume", Start::resume},
                                            {"no-load-optim", Start::no_load_optim},
                                            {"finetune", Start::finetune}};
inline constexpr Choice<CudaGraphs> kCudaGraphs[] = {{"none", CudaGraphs::none},
                                                     {"local", CudaGraphs::local},
                                                     {"transformer_engine", CudaGraphs::transformer_engine},
                                                     {"full_iteration", CudaGraphs::full_iteration}};

inline std::vector<Choice<Policy>> policy_choices() {
  std::vector<Choice<Policy>> choices;
  for (const Policy policy : kPolicies) choices.emplace_back(name_of(policy), policy);
  return choices;
}

}  // namespace ebb
