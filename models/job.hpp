// Job: one training run as the user describes it: model, cluster, parallel sizes, batch, precision, budgets.
// Loaded and checked by job_yaml.hpp / planner/constraints.hpp; plain data here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/cluster.hpp"
#include "models/errors.hpp"
#include "models/model_spec.hpp"
#include "models/policy.hpp"
#include "models/precision.hpp"
#include "models/run_settings.hpp"
#include "models/units.hpp"

namespace ebb {

struct Parallel {
  std::int64_t gpus = 1;
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t virtual_pipeline = 1;
  std::int64_t context = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 0;  // 0 in the file means "as tensor"; resolved when loaded, so never 0 afterwards
  bool sequence = false;
  std::int64_t optimizer_instances = 1;
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;
  std::string pipeline_layout;                     // Megatron's --pipeline-model-parallel-layout, "" = even split
  std::optional<Numel> bucket_numel;               // --ddp-bucket-size
  bool pad_buckets = false;                        // --ddp-pad-buckets-for-high-nccl-busbw
  std::optional<std::int64_t> first_stage_layers;  // --decoder-first-pipeline-num-layers
  std::optional<std::int64_t> last_stage_layers;   // --decoder-last-pipeline-num-layers
  bool account_for_embedding = false;              // --account-for-embedding-in-pipeline-split
  bool account_for_loss = false;                   // --account-for-loss-in-pipeline-split
  std::int64_t micro_batch_group = 0;              // --microbatch-group-size-per-virtual-pipeline-stage; 0: as pipeline
  bool gather_with_step = false;                   // --overlap-param-gather-with-optimizer-step
  bool pipeline_inner = false;  // --use-tp-pp-dp-mapping: pipeline ranks are closer than data-parallel ones

  /// Sizes of the sharding groups (megatron: DP*CP for dense parameters, EDP for experts).
  std::int64_t data() const { return gpus / (tensor * context * pipeline); }
  std::int64_t dense_shards() const { return data() * context / optimizer_instances; }
  std::int64_t expert_data() const { return gpus / (expert_tensor * expert * pipeline); }
  std::int64_t expert_shards() const { return expert_data() / optimizer_instances; }
  bool operator==(const Parallel&) const = default;
};

struct Batch {
  std::int64_t micro = 1;
  std::int64_t global = 1;
  std::int64_t sequence = 0;

  bool operator==(const Batch&) const = default;
};

enum class RecomputeGranularity : std::uint8_t { none, selective, full };

struct Recompute {
  RecomputeGranularity granularity = RecomputeGranularity::none;
  std::string method;                // full: "uniform" or "block"
  std::int64_t layers = 1;           // full: --recompute-num-layers
  std::vector<std::string> modules;  // selective; empty: core_attn (load_job fills it in)

  bool operator==(const Recompute&) const = default;
};

/// What the user fixed about offloading; unset means "search".
struct Offload {
  std::optional<Policy> policy{};
  std::optional<Numel> chunk_numel{};
  std::optional<std::int64_t> chunk_size_mb{};
  std::optional<double> fraction{};
  std::optional<int> slots{};
  std::optional<Bytes> cap{};

  bool operator==(const Offload&) const = default;
};

struct Budget {
  std::optional<Bytes> device;  // default: device memory less the context
  std::optional<Bytes> host;    // pinned bytes of all ranks of one host; default: the host's memory

  bool operator==(const Budget&) const = default;
};

enum class Attention : std::uint8_t {
  flash,
  unfused,  // Transformer Engine's unfused attention: keeps scores
  local,    // Megatron's own layers without Transformer Engine; unfused attention keeps scores
};
enum class AdamKernel : std::uint8_t { fused, foreach };

struct Compute {
  /// Measured forward + backward of all micro-batches, without optimizer and communication; unset: roofline.
  std::optional<Seconds> step_seconds;
  Attention attention = Attention::flash;
  AdamKernel adam = AdamKernel::fused;
  /// Where a policy's runs used another Adam than `adam` (measured jobs).
  std::map<Policy, AdamKernel> adam_by_policy;

  bool operator==(const Compute&) const = default;
};

/// What a run of this job held on the device beyond what Ebb counts (`ebb learn`), on the rank where it was most.
struct Measured {
  Bytes resident_remainder{0};  // between steps, and so at any time after the first forward
  Bytes peak_remainder{0};      // on top of it while forward and backward run

  bool operator==(const Measured&) const = default;
};

struct Job {
  std::string name;  // file name without its extension
  std::string file;  // as given by the user; "" when made in memory
  ModelSpec model;
  Cluster cluster;
  Parallel parallel;
  Batch batch;
  Precision precision;
  Recompute recompute;
  Offload offload;
  Budget budget;
  Compute compute;
  Measured measured;
  OptimizerSettings optimizer;
  ActivationSettings activations;
  RoutingSettings experts;
  CheckpointSettings checkpoint;
  RuntimeSettings megatron;
  /// Where each key stands ("parallel.tensor" -> file:line:column), for messages of later checks.
  std::map<std::string, Place> places;

  /// The place of `key`, else of its parents, else the file.
  Place place_of(const std::string& key) const;
  std::int64_t micro_batches() const { return batch.global / (batch.micro * parallel.data()); }
  AdamKernel adam_of(Policy policy) const {
    const auto it = compute.adam_by_policy.find(policy);
    return it == compute.adam_by_policy.end() ? compute.adam : it->second;
  }
};

}  // namespace ebb
