#include <fmt/format.h>

#include "models/cluster_yaml.hpp"
#include "models/job_words.hpp"
#include "models/job_yaml.hpp"
#include "models/model_yaml.hpp"
#include "models/quantity_text.hpp"
#include "models/run_settings_yaml.hpp"

namespace ebb {

namespace {

void write_if(std::string_view key, bool value, YamlWriter& writer) {
  if (value) writer.field(key, true);
}

void write_parallel(const Parallel& parallel, YamlWriter& writer) {
  writer.open("parallel");
  writer.field("gpus", parallel.gpus);
  writer.field("tensor", parallel.tensor);
  writer.field("pipeline", parallel.pipeline);
  writer.field("virtual_pipeline", parallel.virtual_pipeline);
  writer.field("context", parallel.context);
  writer.field("expert", parallel.expert);
  writer.field("expert_tensor", parallel.expert_tensor);
  writer.field("sequence", parallel.sequence);
  writer.field("optimizer_instances", parallel.optimizer_instances);
  writer.field("overlap_grad_reduce", parallel.overlap_grad_reduce);
  writer.field("overlap_param_gather", parallel.overlap_param_gather);
  if (!parallel.pipeline_layout.empty()) writer.field("pipeline_layout", parallel.pipeline_layout);
  if (parallel.bucket_numel) writer.field("bucket_numel", parallel.bucket_numel->value);
  if (parallel.first_stage_layers) writer.field("first_stage_layers", *parallel.first_stage_layers);
  if (parallel.last_stage_layers) writer.field("last_stage_layers", *parallel.last_stage_layers);
  if (parallel.micro_batch_group > 0) writer.field("micro_batch_group", parallel.micro_batch_group);
  write_if("account_for_embedding", parallel.account_for_embedding, writer);
  write_if("account_for_loss", parallel.account_for_loss, writer);
  write_if("gather_with_step", parallel.gather_with_step, writer);
  write_if("pipeline_inner", parallel.pipeline_inner, writer);
  write_if("pad_buckets", parallel.pad_buckets, writer);
  writer.close();
}

void write_precision(const Precision& precision, YamlWriter& writer) {
  writer.open("precision");
  writer.field("params", name_of(precision.params));
  writer.field("grads", name_of(precision.grads));
  writer.field("exp_avg", name_of(precision.exp_avg));
  writer.field("exp_avg_sq", name_of(precision.exp_avg_sq));
  writer.field("master", name_of(precision.master));
  if (precision.precision_aware) writer.field("precision_aware", *precision.precision_aware);
  if (precision.remainders) writer.field("remainders", *precision.remainders);
  writer.open("fp8");
  writer.field("recipe", word_of(precision.fp8, kFp8Recipes));
  writer.field("param_gather", precision.fp8_param_gather);
  writer.field("columnwise", word_of(precision.fp8_columnwise, kColumnwise));
  if (precision.fp8_reuse_grad_buffer) writer.field("reuse_grad_buffer", *precision.fp8_reuse_grad_buffer);
  if (precision.first_bf16_layers > 0) writer.field("first_bf16_layers", precision.first_bf16_layers);
  if (precision.last_bf16_layers > 0) writer.field("last_bf16_layers", precision.last_bf16_layers);
  writer.close();
  writer.open("fp4");
  writer.field("recipe", word_of(precision.fp4, kFp4Recipes));
  writer.field("param_gather", precision.fp4_param_gather);
  writer.close();
  writer.close();
}

void write_recompute(const Recompute& recompute, YamlWriter& writer) {
  writer.open("recompute");
  writer.field("granularity", word_of(recompute.granularity, kGranularities));
  if (recompute.granularity == RecomputeGranularity::full) {
    writer.field("method", recompute.method);
    writer.field("layers", recompute.layers);
  }
  if (recompute.granularity == RecomputeGranularity::selective) writer.list("modules", recompute.modules);
  writer.close();
}

void write_offload(const Offload& offload, YamlWriter& writer) {
  writer.open("offload");
  writer.field("policy", offload.policy ? name_of(*offload.policy) : "auto");
  if (offload.chunk_numel) writer.field("chunk_numel", offload.chunk_numel->value);
  if (offload.chunk_size_mb) writer.field("chunk_size_mb", *offload.chunk_size_mb);
  if (offload.fraction) writer.field("fraction", *offload.fraction);
  if (offload.slots) writer.field("slots", std::int64_t{*offload.slots});
  if (offload.cap) writer.field("cap", exact_text(*offload.cap));
  writer.close();
}

void write_compute(const Compute& compute, YamlWriter& writer) {
  writer.open("compute");
  if (compute.step_seconds) writer.field("step_seconds", exact_text(*compute.step_seconds));
  writer.field("attention", word_of(compute.attention, kAttentions));
  writer.field("adam", word_of(compute.adam, kAdamKernels));
  if (!compute.adam_by_policy.empty()) {
    writer.open("adam_by_policy");
    for (const auto& [policy, kernel] : compute.adam_by_policy)
      writer.field(name_of(policy), word_of(kernel, kAdamKernels));
    writer.close();
  }
  writer.close();
}

void write_measured(const Measured& measured, YamlWriter& writer) {
  if (measured == Measured{}) return;
  writer.open("measured");
  writer.field("resident_remainder", exact_text(measured.resident_remainder));
  writer.field("peak_remainder", exact_text(measured.peak_remainder));
  writer.close();
}

}  // namespace

std::string write_job(const Job& job, const std::string& cluster) {
  YamlWriter writer;
  writer.open("model");
  write_model(job.model, writer);
  writer.close();
  if (cluster.empty()) {
    writer.open("cluster");
    write_cluster(job.cluster, writer);
    writer.close();
  } else {
    writer.field("cluster", cluster);
  }
  write_parallel(job.parallel, writer);
  writer.open("batch");
  writer.field("micro", job.batch.micro);
  writer.field("global", job.batch.global);
  writer.field("sequence", job.batch.sequence);
  writer.close();
  write_precision(job.precision, writer);
  write_recompute(job.recompute, writer);
  write_offload(job.offload, writer);
  if (job.budget.device || job.budget.host) {
    writer.open("budget");
    if (job.budget.device) writer.field("device", exact_text(*job.budget.device));
    if (job.budget.host) writer.field("host", exact_text(*job.budget.host));
    writer.close();
  }
  write_compute(job.compute, writer);
  write_measured(job.measured, writer);
  write_run_settings(job, writer);
  return writer.text();
}

}  // namespace ebb
