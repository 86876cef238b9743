#include "models/run_settings_yaml.hpp"

#include <fmt/format.h>

#include "models/job_words.hpp"
#include "models/quantity_text.hpp"

namespace ebb {

namespace {

/// A number in [least, most].
void read_number(const YamlFields& fields, std::string_view key, double least, double most, double& out) {
  const YamlNode* node = fields.find(key);
  if (node == nullptr) return;
  out = parse_ratio(fields.scalar(key, *node), node->place);
  if (!(out >= least && out <= most))
    throw InputError(node->place, fmt::format("{} is {}", fields.full_name(key), node->text),
                     fmt::format("use a number from {} to {}", least, most));
}

OptimizerSettings read_optimizer(const YamlFields& fields) {
  OptimizerSettings optimizer;
  fields.choice<OptimizerKind>("kind", optimizer.kind, kOptimizers);
  fields.boolean("distributed", optimizer.distributed);
  fields.boolean("layer_wise", optimizer.layer_wise);
  fields.boolean("decoupled_lr", optimizer.decoupled_lr);
  return optimizer;
}

ActivationSettings read_activations(const YamlFields& fields) {
  ActivationSettings settings;
  read_number(fields, "attention_dropout", 0, 1, settings.attention_dropout);
  read_number(fields, "hidden_dropout", 0, 1, settings.hidden_dropout);
  fields.choice<CrossEntropy>("cross_entropy", settings.cross_entropy, kCrossEntropies);
  fields.boolean("gradient_fusion", settings.gradient_fusion);
  fields.boolean("bias_fusion", settings.bias_fusion);
  fields.boolean("rope_fusion", settings.rope_fusion);
  fields.boolean("loader_mask", settings.loader_mask);
  fields.boolean("deterministic", settings.deterministic);
  return settings;
}

RoutingSettings read_experts(const YamlFields& fields) {
  RoutingSettings experts;
  fields.choice<Dispatcher>("dispatcher", experts.dispatcher, kDispatchers);
  if (fields.find("capacity_factor") != nullptr) {
    experts.capacity_factor = 1;
    read_number(fields, "capacity_factor", 0.01, 1000, *experts.capacity_factor);
  }
  fields.boolean("pad_to_capacity", experts.pad_to_capacity);
  read_number(fields, "imbalance", 1, 1000, experts.imbalance);
  fields.boolean("grouped_matmul", experts.grouped_matmul);
  fields.boolean("permute_fusion", experts.permute_fusion);
  return experts;
}

CheckpointSettings read_checkpoint(const YamlFields& fields) {
  CheckpointSettings checkpoint;
  fields.choice<CheckpointFormat>("format", checkpoint.format, kCheckpointFormats);
  fields.choice<CheckpointSharding>("sharding", checkpoint.sharding, kCheckpointShardings);
  fields.boolean("async_save", checkpoint.async_save);
  fields.boolean("save_optimizer", checkpoint.save_optimizer);
  fields.choice<Start>("start", checkpoint.start, kStarts);
  return checkpoint;
}

RuntimeSettings read_megatron(const YamlFields& fields) {
  RuntimeSettings settings;
  fields.choice<CudaGraphs>("cuda_graphs", settings.cuda_graphs, kCudaGraphs);
  fields.boolean("optimizer_cuda_graph", settings.optimizer_cuda_graph);
  fields.boolean("fsdp", settings.fsdp);
  fields.boolean("rl_offload_optimizer", settings.rl_offload_optimizer);
  fields.boolean("optimizer_cpu_offload", settings.optimizer_cpu_offload);
  fields.boolean("expandable_segments", settings.expandable_segments);
  fields.count("empty_cache_level", settings.empty_cache_level, 0, 2);
  fields.boolean("nccl_graph_register", settings.nccl_graph_register);
  fields.boolean("tensor_overlap", settings.tensor_overlap);
  return settings;
}

}  // namespace

void read_run_settings(const YamlFields& job_fields, Job& job) {
  if (const auto block = job_fields.nested("optimizer", {"kind", "distributed", "layer_wise", "decoupled_lr"}))
    job.optimizer = read_optimizer(*block);
  if (const auto block =
          job_fields.nested("activations", {"attention_dropout", "hidden_dropout", "cross_entropy", "gradient_fusion",
                                            "bias_fusion", "rope_fusion", "loader_mask", "deterministic"}))
    job.activations = read_activations(*block);
  if (const auto block = job_fields.nested("experts", {"dispatcher", "capacity_factor", "pad_to_capacity", "imbalance",
                                                       "grouped_matmul", "permute_fusion"}))
    job.experts = read_experts(*block);
  if (const auto block =
          job_fields.nested("checkpoint", {"format", "sharding", "async_save", "save_optimizer", "start"}))
    job.checkpoint = read_checkpoint(*block);
  if (const auto block = job_fields.nested(
          "megatron", {"cuda_graphs", "optimizer_cuda_graph", "fsdp", "rl_offload_optimizer", "optimizer_cpu_offload",
                       "expandable_segments", "empty_cache_level", "nccl_graph_register", "tensor_overlap"}))
    job.megatron = read_megatron(*block);
}

namespace {

void write(const OptimizerSettings& optimizer, YamlWriter& writer) {
  writer.open("optimizer");
  writer.field("kind", word_of(optimizer.kind, kOptimizers));
  writer.field("distributed", optimizer.distributed);
  writer.field("layer_wise", optimizer.layer_wise);
  writer.field("decoupled_lr", optimizer.decoupled_lr);
  writer.close();
}

void write(const ActivationSettings& settings, YamlWriter& writer) {
  writer.open("activations");
  writer.field("attention_dropout", settings.attention_dropout);
  writer.field("hidden_dropout", settings.hidden_dropout);
  writer.field("cross_entropy", word_of(settings.cross_entropy, kCrossEntropies));
  writer.field("gradient_fusion", settings.gradient_fusion);
  writer.field("bias_fusion", settings.bias_fusion);
  writer.field("rope_fusion", settings.rope_fusion);
  writer.field("loader_mask", settings.loader_mask);
  writer.field("deterministic", settings.deterministic);
  writer.close();
}

void write(const RoutingSettings& experts, YamlWriter& writer) {
  writer.open("experts");
  writer.field("dispatcher", word_of(experts.dispatcher, kDispatchers));
  if (experts.capacity_factor) writer.field("capacity_factor", *experts.capacity_factor);
  writer.field("pad_to_capacity", experts.pad_to_capacity);
  writer.field("imbalance", experts.imbalance);
  writer.field("grouped_matmul", experts.grouped_matmul);
  writer.field("permute_fusion", experts.permute_fusion);
  writer.close();
}

void write(const CheckpointSettings& checkpoint, YamlWriter& writer) {
  writer.open("checkpoint");
  writer.field("format", word_of(checkpoint.format, kCheckpointFormats));
  writer.field("sharding", word_of(checkpoint.sharding, kCheckpointShardings));
  writer.field("async_save", checkpoint.async_save);
  writer.field("save_optimizer", checkpoint.save_optimizer);
  writer.field("start", word_of(checkpoint.start, kStarts));
  writer.close();
}

void write(const RuntimeSettings& settings, YamlWriter& writer) {
  writer.open("megatron");
  writer.field("cuda_graphs", word_of(settings.cuda_graphs, kCudaGraphs));
  writer.field("optimizer_cuda_graph", settings.optimizer_cuda_graph);
  writer.field("fsdp", settings.fsdp);
  writer.field("rl_offload_optimizer", settings.rl_offload_optimizer);
  writer.field("optimizer_cpu_offload", settings.optimizer_cpu_offload);
  writer.field("expandable_segments", settings.expandable_segments);
  writer.field("empty_cache_level", settings.empty_cache_level);
  writer.field("nccl_graph_register", settings.nccl_graph_register);
  writer.field("tensor_overlap", settings.tensor_overlap);
  writer.close();
}

template <class Block>
void write_unless_default(const Block& block, YamlWriter& writer) {
  if (!(block == Block{})) write(block, writer);
}

}  // namespace

void write_run_settings(const Job& job, YamlWriter& writer) {
  write_unless_default(job.optimizer, writer);
  write_unless_default(job.activations, writer);
  write_unless_default(job.experts, writer);
  write_unless_default(job.checkpoint, writer);
  write_unless_default(job.megatron, writer);
}

}  // namespace ebb
