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
inline constexpr Choice<Dtype> kGradTypes[] = {{"fp32", Dtype::fp32}, {"bf16", Dtype::bf16}};
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
inline constexpr Choice<Attention> kAttentions[] = {{"flash", Attention::flash}, {"local", Attention::local}};
inline constexpr Choice<AdamKernel> kAdamKernels[] = {{"fused", AdamKernel::fused}, {"foreach", AdamKernel::foreach}};

inline std::vector<Choice<Policy>> policy_choices() {
  std::vector<Choice<Policy>> choices;
  for (const Policy policy : kPolicies) choices.emplace_back(name_of(policy), policy);
  return choices;
}

}  // namespace ebb
