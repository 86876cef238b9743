// Parallel sizes, pipeline split, buckets and batch out of Megatron-LM's arguments. Source of names and defaults:
// Megatron-LM main, arguments.py (_add_distributed_args, validate_args).
#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "planner/constraints.hpp"
#include "planner/megatron_parts.hpp"
#include "planner/parameters.hpp"
#include "planner/pipeline_layout.hpp"

namespace ebb {

namespace {

void require_alone(const MegatronImport& in) {
  int given = 0;
  for (const char* name : {"num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank",
                           "pipeline-model-parallel-layout"})
    if (in.values.has(name) && ++given > 1)
      in.values.reject(name, "virtual stages are given twice",
                       "use one of --num-layers-per-virtual-pipeline-stage, --num-virtual-stages-per-pipeline-rank and "
                       "--pipeline-model-parallel-layout");
}

/// Virtual stages of a pipeline rank.
std::int64_t virtual_stages(const MegatronImport& in) {
  constexpr std::string_view kByLayers = "num-layers-per-virtual-pipeline-stage";
  constexpr std::string_view kLayout = "pipeline-model-parallel-layout";
  require_alone(in);
  const Parallel& parallel = in.job().parallel;
  if (!parallel.pipeline_layout.empty()) {
    const auto stages =
        static_cast<std::int64_t>(parse_pipeline_layout(parallel.pipeline_layout, in.values.place_of(kLayout)).size());
    if (stages % parallel.pipeline != 0)
      in.values.reject(kLayout, fmt::format("{} stages do not divide into {} ranks", stages, parallel.pipeline),
                       "write a multiple of --pipeline-model-parallel-size");
    return stages / parallel.pipeline;
  }
  const std::optional<std::int64_t> layers = in.values.find_count(kByLayers);
  if (!layers) return in.values.count("num-virtual-stages-per-pipeline-rank", 1);
  if (parallel.first_stage_layers || parallel.last_stage_layers)
    in.values.reject(kByLayers, "the first or the last stage has a number of layers of its own",
                     "use --num-virtual-stages-per-pipeline-rank");
  const std::int64_t all =
      in.job().model.layers + (parallel.account_for_embedding ? 1 : 0) + (parallel.account_for_loss ? 1 : 0);
  if (all % parallel.pipeline != 0 || all / parallel.pipeline % *layers != 0)
    in.values.reject(
        kByLayers,
        fmt::format("{} layers on {} ranks do not divide into stages of {}", all, parallel.pipeline, *layers),
        "use a divisor of the layers of a rank");
  return all / parallel.pipeline / *layers;
}

/// --step-batch-size-schedule "0:384 200B:768 400B:1152": the first.
std::int64_t first_of_schedule(const MegatronImport& in) {
  constexpr std::string_view kName = "step-batch-size-schedule";
  const std::vector<std::string> entries = in.values.words(kName);
  const std::size_t colon = entries.empty() ? std::string::npos : entries[0].find(':');
  if (colon == std::string::npos)
    in.values.reject(kName, "is not a schedule", "write START:SIZE START:SIZE, for example \"0:384 200B:768\"");
  const std::int64_t size = parse_count(entries[0].substr(colon + 1), in.values.place_of(kName));
  if (size < 1 || size > 1'000'000'000) in.values.reject(kName, "the first size is out of range", "");
  if (entries.size() > 1)
    in.note(ImportNoteKind::assumed, kName, fmt::format("the first global batch of the schedule, {}", size));
  return size;
}

}  // namespace

void import_parallel(const MegatronImport& in) {
  const MegatronValues& values = in.values;
  Parallel& parallel = in.job().parallel;
  parallel.tensor = values.count("tensor-model-parallel-size", 1);
  parallel.pipeline = values.count("pipeline-model-parallel-size", 1);
  parallel.context = values.count("context-parallel-size", 1);
  parallel.expert = values.count("expert-model-parallel-size", 1);
  parallel.expert_tensor = values.count("expert-tensor-parallel-size", parallel.tensor);
  parallel.sequence = values.flag("sequence-parallel");
  if (parallel.sequence && parallel.tensor == 1) {
    parallel.sequence = false;  // as validate_args
    in.note(ImportNoteKind::ignored, "sequence-parallel", "without tensor parallelism Megatron-LM turns it off");
  }
  parallel.optimizer_instances = values.count("num-distributed-optimizer-instances", 1);
  parallel.overlap_grad_reduce = values.flag("overlap-grad-reduce");
  parallel.overlap_param_gather = values.flag("overlap-param-gather");
  parallel.gather_with_step = values.flag("overlap-param-gather-with-optimizer-step");
  parallel.pipeline_layout = values.text("pipeline-model-parallel-layout", "");
  parallel.first_stage_layers = values.find_count("decoder-first-pipeline-num-layers");
  parallel.last_stage_layers = values.find_count("decoder-last-pipeline-num-layers");
  parallel.account_for_embedding = values.flag("account-for-embedding-in-pipeline-split");
  parallel.account_for_loss = values.flag("account-for-loss-in-pipeline-split");
  parallel.micro_batch_group = values.count("microbatch-group-size-per-virtual-pipeline-stage", 0);
  parallel.pipeline_inner = values.flag("use-tp-pp-dp-mapping");
  parallel.pad_buckets = values.flag("ddp-pad-buckets-for-high-nccl-busbw");
  if (const auto numel = values.find_count("ddp-bucket-size")) parallel.bucket_numel = Numel{*numel};
  parallel.virtual_pipeline = virtual_stages(in);
}

void import_batch(const MegatronImport& in) {
  const MegatronValues& values = in.values;
  const Parallel& parallel = in.job().parallel;
  Batch& batch = in.job().batch;
  batch.micro = values.require_count("micro-batch-size");
  batch.sequence = values.require_count(values.has("encoder-seq-length") ? "encoder-seq-length" : "seq-length");
  if (values.has("step-batch-size-schedule")) {
    batch.global = first_of_schedule(in);
    return;
  }
  // Megatron's default is one micro-batch. Sizes that do not fit the GPUs are check()'s to reject.
  const double ranks = static_cast<double>(parallel.tensor) * static_cast<double>(parallel.pipeline) *
                       static_cast<double>(parallel.context);
  const auto replicas = static_cast<std::int64_t>(std::max(1.0, static_cast<double>(parallel.gpus) / ranks));
  batch.global = values.count("global-batch-size", batch.micro * replicas);
  if (values.has("rampup-batch-size"))
    in.note(ImportNoteKind::assumed, "rampup-batch-size", fmt::format("the batch after the ramp, {}", batch.global));
}

void import_bucket_count(const MegatronImport& in) {
  const std::optional<std::int64_t> buckets = in.values.find_count("ddp-num-buckets");
  if (!buckets) return;
  if (in.values.has("ddp-bucket-size"))
    in.values.reject("ddp-num-buckets", "--ddp-bucket-size says it too", "leave one of them out");
  const Job& job = in.job();
  check(job);
  std::int64_t numel = 0;
  for (const ModelChunk& chunk : model_chunks(job, 0))
    for (const Parameter& parameter : chunk_parameters(job, chunk)) numel += parameter.numel().value;
  in.job().parallel.bucket_numel = Numel{std::max<std::int64_t>(numel / *buckets, 1)};
}

}  // namespace ebb
