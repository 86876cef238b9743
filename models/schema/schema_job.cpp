// The schema of a job (models/job_yaml.cpp reads it). Its words are those of job_words.hpp.
#include "models/job_words.hpp"
#include "models/schema/schema_parts.hpp"
#include "models/schema/schema_settings.hpp"

namespace ebb::schema {

namespace {

constexpr std::int64_t kMostRanks = 1'000'000;
constexpr std::int64_t kMostLayers = 100'000;

Json ranks(std::string_view description) { return yaml_count(description, 1, kMostRanks); }

/// A name in the library, a path, or the thing in place.
Json reference(std::string_view description, Json in_place) {
  return any_of(description, {yaml_text("A name in the library (ebb models list, ebb clusters list) or a path."),
                              std::move(in_place)});
}

Json parallel_schema() {
  return object(
      "How the work is divided over GPUs.",
      {{"gpus", ranks("GPUs of the whole job."), required},
       {"tensor", ranks("Tensor parallel size (1).")},
       {"pipeline", ranks("Pipeline parallel size (1).")},
       {"virtual_pipeline", ranks("Model chunks of a pipeline stage (1).")},
       {"context", ranks("Context parallel size (1).")},
       {"expert", ranks("Expert parallel size (1).")},
       {"expert_tensor", ranks("Tensor parallel size of experts (default: tensor).")},
       {"sequence", boolean("Sequence parallelism beside tensor parallelism (false).")},
       {"optimizer_instances", ranks("--num-distributed-optimizer-instances (1).")},
       {"overlap_grad_reduce", boolean("--overlap-grad-reduce (true).")},
       {"overlap_param_gather", boolean("--overlap-param-gather (true).")},
       {"pipeline_layout", yaml_text("--pipeline-model-parallel-layout, e.g. Et*3|(tt|)*29m|L.")},
       {"bucket_numel", yaml_numel("--ddp-bucket-size: elements of a gradient bucket, more than 0.")},
       {"first_stage_layers", yaml_count("--decoder-first-pipeline-num-layers.", 1, kMostLayers)},
       {"last_stage_layers", yaml_count("--decoder-last-pipeline-num-layers.", 1, kMostLayers)},
       {"account_for_embedding", boolean("--account-for-embedding-in-pipeline-split (false).")},
       {"account_for_loss", boolean("--account-for-loss-in-pipeline-split (false).")},
       {"micro_batch_group", ranks("--microbatch-group-size-per-virtual-pipeline-stage (default: pipeline).")},
       {"gather_with_step", boolean("--overlap-param-gather-with-optimizer-step (false).")},
       {"pipeline_inner",
        boolean("--use-tp-pp-dp-mapping: pipeline ranks are closer than data-parallel ones (false).")},
       {"pad_buckets", boolean("--ddp-pad-buckets-for-high-nccl-busbw (false).")}});
}

Json batch_schema() {
  return object("Batch and sequence.",
                {{"micro", yaml_count("Sequences of a micro-batch (1).", 1, 1'000'000)},
                 {"global", yaml_count("Sequences of a step over all data-parallel ranks."), required},
                 {"sequence", yaml_count("Tokens of a sequence.", 1, 100'000'000), required}});
}

Json precision_schema() {
  return object(
      "Types of parameters, gradients and optimizer state.",
      {{"params", choice("Parameters (bf16).", kParamTypes)},
       {"grads", choice("Main gradients, --main-grads-dtype (fp32).", kGradTypes)},
       {"exp_avg", choice("First moment, --exp-avg-dtype (fp32).", kMomentTypes)},
       {"exp_avg_sq", choice("Second moment, --exp-avg-sq-dtype (fp32).", kMomentTypes)},
       {"master", choice("Master weights, --main-params-dtype (fp32).", kMasterTypes)},
       {"precision_aware", boolean("--use-precision-aware-optimizer (default: where a type asks for it).")},
       {"remainders", boolean("Masters are kept as the 16 bits that the bf16 parameter lacks (default: as Megatron).")},
       {"fp8", object("FP8 linear layers.",
                      {{"recipe", choice("--fp8-recipe (none).", kFp8Recipes)},
                       {"param_gather", boolean("--fp8-param-gather: parameters are kept in FP8 (false).")},
                       {"columnwise", choice("When transposed copies of gathered weights come: eager, lazy or, as the "
                                             "recipe and CUDA graphs say, auto.",
                                             kColumnwise)},
                       {"reuse_grad_buffer", boolean("--reuse-grad-buf-for-mxfp8-param-ag (default: with mxfp8).")},
                       {"first_bf16_layers", yaml_count("So many first layers stay in bf16 (0).", 0, kMostLayers)},
                       {"last_bf16_layers", yaml_count("So many last layers stay in bf16 (0).", 0, kMostLayers)}})},
       {"fp4", object("FP4 linear layers.", {{"recipe", choice("--fp4-recipe (none).", kFp4Recipes)},
                                             {"param_gather", boolean("--fp4-param-gather (false).")}})}});
}

Json recompute_schema() {
  return object("Recomputation of activations.",
                {{"granularity", choice("none, selective (modules) or full (layers).", kGranularities)},
                 {"method", one_of_words("full: uniform or block.", {"uniform", "block"})},
                 {"layers", yaml_count("full: --recompute-num-layers (1).", 1, kMostLayers)},
                 {"modules", list("selective: --recompute-modules ([core_attn]).",
                                  one_of_words("", {std::begin(kRecomputeModules), std::end(kRecomputeModules)}))}});
}

Json offload_schema() {
  return object("What is fixed about offloading; the rest is searched.",
                {{"policy", yaml_or_auto(choice("How optimizer state moves.", policy_choices()))},
                 {"chunk_numel", yaml_or_auto(yaml_numel("chunked, pipelined, tidal: size of a chunk, more than 0."))},
                 {"chunk_size_mb", yaml_or_auto(yaml_count("windowed: MiB of moments in a chunk; 0: all.", 0))},
                 {"fraction", yaml_or_auto(yaml_ratio("windowed, cpu-adam: part of the state that moves.", 0, 1))},
                 {"slots", yaml_or_auto(yaml_count("pipelined: device slots.", 1, 1024))},
                 {"cap", yaml_or_auto(yaml_bytes("tidal: live device bytes stay below it"))}});
}

Json compute_schema() {
  std::vector<Field> by_policy;
  for (const Policy policy : kPolicies)
    by_policy.push_back({std::string(name_of(policy)), choice("The Adam of this policy's runs.", kAdamKernels)});
  return object(
      "What the step takes besides optimizer and communication.",
      {{"step_seconds", yaml_seconds("Measured forward + backward of all micro-batches (default: a roofline at "
                                     "the cluster's rates), more than 0.")},
       {"attention", choice("Which attention keeps what (flash).", kAttentions)},
       {"adam", choice("Which Adam runs on the GPU (fused).", kAdamKernels)},
       {"adam_by_policy", object("Where a policy's runs used another Adam.", by_policy)}});
}

Json measured_schema() {
  return object("Device memory that a run of this job held beyond what Ebb counts (ebb learn writes it).",
                {{"resident_remainder", yaml_bytes("Between steps, and so at any time (0)")},
                 {"peak_remainder", yaml_bytes("On top of it, while forward and backward run (0)")}});
}

}  // namespace

std::string job_document() {
  std::vector<Field> fields = {
      {"model", reference("The model.", model_schema()), required},
      {"cluster", reference("The cluster.", cluster_schema()), required},
      {"parallel", parallel_schema(), required},
      {"batch", batch_schema(), required},
      {"precision", precision_schema()},
      {"recompute", recompute_schema()},
      {"offload", offload_schema()},
      {"budget", object("What may be used.",
                        {{"device", yaml_bytes("Device memory of a GPU (default: all less the context)")},
                         {"host", yaml_bytes("Memory of a host, pinned and pageable (default: all of it)")}})},
      {"compute", compute_schema()},
      {"measured", measured_schema()}};
  for (Field& field : run_settings_fields()) fields.push_back(std::move(field));
  return document("job", 1, "Job of Ebb", object("One training job on one cluster.", fields));
}

}  // namespace ebb::schema
