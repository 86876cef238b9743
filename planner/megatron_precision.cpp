// Storage types and FP8/FP4 recipes out of Megatron-LM's arguments. Source of names and defaults: Megatron-LM main,
// arguments.py (_add_mixed_precision_args, _add_transformer_engine_args, _add_experimental_args, validate_args).
#include "models/job_words.hpp"
#include "planner/megatron_parts.hpp"

namespace ebb {

namespace {

/// bf16 gradients add up in fp32 unless told otherwise; those of fp16 only where told so; fp32 has nothing else.
Dtype gradients(const MegatronImport& in, Dtype params) {
  const MegatronValues& values = in.values;
  static constexpr Choice<Dtype> kMain[] = {{"fp32", Dtype::fp32}, {"bf16", Dtype::bf16}};
  const Dtype main_grads = values.choice<Dtype>("main-grads-dtype", Dtype::fp32, kMain);
  const bool in_fp32 = values.flag("accumulate-allreduce-grads-in-fp32");
  switch (params) {
    case Dtype::fp32:
      return Dtype::fp32;
    case Dtype::bf16:
      if (values.flag("grad-reduce-in-bf16")) return Dtype::bf16;
      return in_fp32 ? Dtype::fp32 : main_grads;
    default:
      return in_fp32 ? Dtype::fp32 : params;
  }
}

void import_fp8(const MegatronImport& in, Precision& precision) {
  static constexpr Choice<Fp8Recipe> kRecipes[] = {{"delayed", Fp8Recipe::delayed},
                                                   {"tensorwise", Fp8Recipe::tensorwise},
                                                   {"blockwise", Fp8Recipe::blockwise},
                                                   {"mxfp8", Fp8Recipe::mxfp8},
                                                   {"custom", Fp8Recipe::tensorwise}};
  const MegatronValues& values = in.values;
  if (!values.has("fp8-format")) {
    if (values.flag("fp8-param-gather"))
      in.note(ImportNoteKind::ignored, "fp8-param-gather", "there is no --fp8-format: no weight is FP8");
    return;
  }
  precision.fp8 = values.choice<Fp8Recipe>("fp8-recipe", Fp8Recipe::delayed, kRecipes);
  if (values.text("fp8-recipe", "") == "custom")
    in.note(ImportNoteKind::not_modelled, "fp8-recipe", "a recipe of its own; taken as tensorwise");
  precision.fp8_param_gather = values.flag("fp8-param-gather");
  if (precision.fp8 == Fp8Recipe::mxfp8)
    precision.fp8_reuse_grad_buffer = values.flag("reuse-grad-buf-for-mxfp8-param-ag");
  if (!values.flag("first-last-layers-bf16")) return;
  precision.first_bf16_layers = values.count("num-layers-at-start-in-bf16", 1, 0);
  precision.last_bf16_layers = values.count("num-layers-at-end-in-bf16", 1, 0);
  for (const char* name : {"num-layers-at-start-in-bf16", "num-layers-at-end-in-bf16"})
    if (values.count(name, 1, 0) > 100'000) values.reject(name, "is out of range", "use at most 100000");
}

void import_fp4(const MegatronImport& in, Precision& precision) {
  if (!in.values.has("fp4-format")) return;
  if (in.values.has("fp8-format"))
    in.values.reject("fp4-format", "Megatron-LM takes FP8 or FP4, not both", "leave one of them out");
  precision.fp4 = Fp4Recipe::nvfp4;
  if (in.values.text("fp4-recipe", "nvfp4") != "nvfp4")
    in.note(ImportNoteKind::not_modelled, "fp4-recipe", "a recipe of its own; taken as nvfp4");
  precision.fp4_param_gather = in.values.flag("fp4-param-gather");
}

}  // namespace

void import_precision(const MegatronImport& in) {
  const MegatronValues& values = in.values;
  Precision& precision = in.job().precision;
  const bool bf16 = values.flag("bf16");
  const bool fp16 = values.flag("fp16");
  if (bf16 && fp16) values.reject("fp16", "Megatron-LM takes --bf16 or --fp16, not both", "leave one of them out");
  precision.params = bf16 ? Dtype::bf16 : fp16 ? Dtype::fp16 : Dtype::fp32;
  precision.grads = gradients(in, precision.params);
  precision.exp_avg = values.choice<Dtype>("exp-avg-dtype", Dtype::fp32, kMomentTypes);
  precision.exp_avg_sq = values.choice<Dtype>("exp-avg-sq-dtype", Dtype::fp32, kMomentTypes);
  precision.master = values.choice<Dtype>("main-params-dtype", Dtype::fp32, kMasterTypes);
  precision.precision_aware = values.flag("use-precision-aware-optimizer");
  for (const char* name : {"main-grads-dtype", "main-params-dtype", "exp-avg-dtype", "exp-avg-sq-dtype"})
    if (!*precision.precision_aware && values.text(name, "fp32") != "fp32")
      values.reject(name, "a type other than fp32 needs the precision-aware optimizer",
                    "add --use-precision-aware-optimizer");
  import_fp8(in, precision);
  import_fp4(in, precision);
}

}  // namespace ebb
