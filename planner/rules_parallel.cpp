// What tensor, sequence, context and expert parallelism ask of the model, and what the batch must divide into.
#include <fmt/format.h>

#include <algorithm>

#include "planner/rule_lists.hpp"

namespace ebb::rule_lists {

namespace {

constexpr std::int64_t kMostExpertsOfRank = 1 << 17;  // over all layers
constexpr double kMostActivationBytes = 1e17;         // sums of a few such still fit 63 bits

constexpr std::string_view kAttention = "Megatron-LM main d98e8a64dd, megatron/core/transformer/attention.py";
constexpr std::string_view kColumns = "Megatron-LM main d98e8a64dd, megatron/core/transformer/mlp.py";

bool any_dense_layer(const ModelSpec& model) {
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (!model.layer_is_moe(layer)) return true;
  return false;
}

Rules tensor_rules() {
  const std::vector<std::string_view> sized = {"model-range", "job-range"};
  return {
      {.id = "tensor-heads",
       .key = "parallel.tensor",
       .find = [](const Situation& s,
                  Findings& out) { require_divisor(out, s.job.parallel.tensor, s.job.model.heads, "attention heads"); },
       .reason = "a tensor rank holds whole heads",
       .source = kTransformerConfig,
       .after = sized},
      // With fewer query groups than tensor ranks a group's rows of the fused projection are split over several ranks.
      {.id = "tensor-kv-heads",
       .key = "parallel.tensor",
       .find =
           [](const Situation& s, Findings& out) {
             const ModelSpec& model = s.job.model;
             const std::int64_t tensor = s.job.parallel.tensor;
             const std::int64_t groups = std::max<std::int64_t>(model.kv_heads, 1);
             if (model.mla || model.kv_heads % tensor == 0 || tensor % groups == 0) return;
             out.push_back(
                 {fmt::format("{} is neither a divisor nor a multiple of the {} kv_heads", tensor, model.kv_heads),
                  fmt::format("use {}", nearest_divisors(model.kv_heads, tensor))});
           },
       .reason = "a tensor rank holds whole query groups, or whole ranks share one",
       .source = kTransformerConfig,
       .after = sized},
      {.id = "tensor-qkv-rows",
       .key = "parallel.tensor",
       .find =
           [](const Situation& s, Findings& out) {
             const ModelSpec& model = s.job.model;
             if (!model.mla)
               require_divisor(out, s.job.parallel.tensor, (model.heads + 2 * model.kv_heads) * model.head_dim,
                               "rows of the fused query, key and value projection");
           },
       .reason = "a tensor rank holds an equal part of the rows",
       .source = kAttention,
       .after = {"model-range", "job-range", "tensor-heads", "tensor-kv-heads"}},
      {.id = "tensor-mtp",
       .key = "parallel.tensor",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.model.mtp_layers() > 0)
               require_divisor(out, s.job.parallel.tensor, s.job.model.hidden,
                               "rows of a prediction layer's projection (hidden)");
           },
       .reason = "the projection is split by columns over the tensor ranks",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/transformer/multi_token_prediction.py",
       .after = sized},
      {.id = "tensor-ffn",
       .key = "parallel.tensor",
       .find =
           [](const Situation& s, Findings& out) {
             if (any_dense_layer(s.job.model))
               require_divisor(out, s.job.parallel.tensor, s.job.model.ffn, "columns of ffn");
           },
       .reason = "a tensor rank holds an equal part of the columns",
       .source = kColumns,
       .after = sized},
      {.id = "tensor-shared-ffn",
       .key = "parallel.tensor",
       .find =
           [](const Situation& s, Findings& out) {
             const ModelSpec& model = s.job.model;
             if (model.moe && model.moe->shared_ffn > 0)
               require_divisor(out, s.job.parallel.tensor, model.moe->shared_ffn, "columns of the shared experts' ffn");
           },
       .reason = "a tensor rank holds an equal part of the columns",
       .source = kColumns,
       .after = sized},
      {.id = "sequence-needs-tensor",
       .key = "parallel.sequence",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.parallel.sequence && s.job.parallel.tensor == 1)
               out.push_back({"sequence parallelism needs tensor > 1", "set sequence: false or tensor: 2"});
           },
       .reason = "it splits over the tensor ranks; Megatron turns it off without them",
       .source = kArguments,
       .after = {"job-range"}},
  };
}

Rules expert_rules() {
  return {
      {.id = "expert-needs-experts",
       .key = "parallel.expert",
       .find =
           [](const Situation& s, Findings& out) {
             if (!s.job.model.moe && s.job.parallel.expert > 1)
               out.push_back({"the model has no experts", "set expert: 1"});
           },
       .reason = "",
       .source = kArguments},
      {.id = "expert-divides",
       .key = "parallel.expert",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.model.moe) require_divisor(out, s.job.parallel.expert, s.job.model.moe->experts, "experts");
           },
       .reason = "an expert rank holds whole experts",
       .source = kArguments,
       .after = {"model-range", "job-range"}},
      {.id = "experts-of-rank",
       .key = "parallel.expert",
       .find =
           [](const Situation& s, Findings& out) {
             if (!s.job.model.moe) return;
             const std::int64_t local = s.job.model.moe->experts / s.job.parallel.expert;
             if (s.job.model.layers * local > kMostExpertsOfRank)
               out.push_back(
                   {fmt::format("{} layers of {} experts are too many for one rank", s.job.model.layers, local),
                    "use more expert parallelism"});
           },
       .reason = "",
       .source = kLimit,
       .after = {"expert-divides"}},
      {.id = "expert-tensor-ffn",
       .key = "parallel.expert_tensor",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.model.moe)
               require_divisor(out, s.job.parallel.expert_tensor, s.job.model.moe->ffn, "columns of an expert's ffn");
           },
       .reason = "a tensor rank of an expert holds an equal part of the columns",
       .source = kColumns,
       .after = {"model-range", "job-range"}},
      {.id = "moe-needs-sequence",
       .key = "parallel.sequence",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.model.moe && s.job.parallel.tensor > 1 && !s.job.parallel.sequence)
               out.push_back({"a mixture of experts with tensor > 1 trains with sequence parallelism only",
                              "set sequence: true"});
           },
       .reason = "tokens are dispatched once, not by every tensor rank",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/transformer/moe/moe_layer.py"},
      {.id = "padding-needs-capacity",
       .key = "experts.pad_to_capacity",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.model.moe && s.job.experts.pad_to_capacity && !s.job.experts.capacity_factor)
               out.push_back({"needs a capacity_factor", "give experts.capacity_factor, or leave it out"});
           },
       .reason = "without one there is no length to pad to",
       .source = kTransformerConfig},
      {.id = "expert-not-fp16",
       .key = "precision.params",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.parallel.expert > 1 && s.job.precision.params == Dtype::fp16)
               out.push_back({"expert parallelism does not train in fp16", "use bf16, or set parallel.expert: 1"});
           },
       .reason = "",
       .source = kArguments},
  };
}

Rules batch_rules() {
  return {
      {.id = "context-sequence",
       .key = "batch.sequence",
       .find =
           [](const Situation& s, Findings& out) {
             const std::int64_t parts = 2 * s.job.parallel.context;
             const std::int64_t length = s.job.batch.sequence;
             if (s.job.parallel.context > 1 && length % parts != 0)
               out.push_back({fmt::format("{} is not a multiple of 2 x context ({})", length, parts),
                              fmt::format("use {}", nearest_multiples(parts, length))});
           },
       .reason = "every rank takes one part from each end, so that causal attention is even",
       .source = kArguments,
       .after = {"job-range"}},
      {.id = "sequence-tensor",
       .key = "batch.sequence",
       .find =
           [](const Situation& s, Findings& out) {
             const Parallel& p = s.job.parallel;
             const std::int64_t length = s.job.batch.sequence;
             if (p.sequence && length / p.context % p.tensor != 0)
               out.push_back(
                   {fmt::format("{} over context {} is not a multiple of tensor {}", length, p.context, p.tensor),
                    fmt::format("use {}", nearest_multiples(2 * p.context * p.tensor, length))});
           },
       .reason = "sequence parallelism gives every tensor rank the same number of tokens",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/tensor_parallel/mappings.py",
       .after = {"job-range", "context-sequence"}},
      {.id = "learned-positions",
       .key = "batch.sequence",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.model.positions == Positions::learned && s.job.batch.sequence > s.job.model.max_positions)
               out.push_back({fmt::format("{} is longer than the model's {} learned positions", s.job.batch.sequence,
                                          s.job.model.max_positions),
                              fmt::format("use at most {}", s.job.model.max_positions)});
           },
       .reason = "",
       .source = kArguments},
      {.id = "prediction-positions",
       .key = "model.positions",
       .find =
           [](const Situation& s, Findings& out) {
             if (s.job.model.mtp_layers() > 0 && s.job.model.positions == Positions::learned)
               out.push_back({"prediction layers do not go with learned positions", "use rope or none"});
           },
       .reason = "",
       .source = kArguments},
      {.id = "batch-divides",
       .key = "batch.global",
       .find =
           [](const Situation& s, Findings& out) {
             const Batch& b = s.job.batch;
             const std::int64_t data = s.job.parallel.data();
             if (b.global % (b.micro * data) != 0)
               out.push_back({fmt::format("{} is not a multiple of micro x data-parallel size ({} x {})", b.global,
                                          b.micro, data),
                              fmt::format("use {}", nearest_multiples(b.micro * data, b.global))});
           },
       .reason = "every data-parallel rank runs the same whole number of micro-batches",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/num_microbatches_calculator.py",
       .after = {"world-dense"}},
      {.id = "interleaved-groups",
       .key = "batch.global",
       .find =
           [](const Situation& s, Findings& out) {
             const Parallel& p = s.job.parallel;
             const std::int64_t micro_batches = s.job.micro_batches();
             if (p.virtual_pipeline == 1) return;
             if (p.micro_batch_group == 0) {
               const std::int64_t one_each = s.job.batch.micro * p.data();
               if (micro_batches % p.pipeline != 0)
                 out.push_back({fmt::format("{} micro-batches are not a multiple of pipeline {}, which "
                                            "virtual_pipeline needs",
                                            micro_batches, p.pipeline),
                                fmt::format("use {}", nearest_multiples(one_each * p.pipeline, s.job.batch.global))});
               return;
             }
             const std::int64_t left = micro_batches % p.micro_batch_group;
             if (p.micro_batch_group < p.pipeline || p.micro_batch_group > micro_batches)
               out.push_back({fmt::format("{} is outside pipeline {} to the {} micro-batches", p.micro_batch_group,
                                          p.pipeline, micro_batches),
                              "use a number in that range, or leave it out", "parallel.micro_batch_group"});
             else if (left > 0 && left < p.pipeline)
               out.push_back({fmt::format("groups of {} leave {} of the {} micro-batches, fewer than pipeline {}",
                                          p.micro_batch_group, left, micro_batches, p.pipeline),
                              "use a group that leaves none, or leave it out", "parallel.micro_batch_group"});
           },
       .reason = "the interleaved schedule runs a virtual stage for a group of at least pipeline micro-batches",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/pipeline_parallel/schedules.py:950-985",
       .after = {"batch-divides"}},
      {.id = "activation-size",
       .key = "batch.sequence",
       .find =
           [](const Situation& s, Findings& out) {
             const double bytes = rough_activation_bytes(s.job);
             if (bytes > kMostActivationBytes)
               out.push_back({fmt::format("a micro-batch would save about {:.0e} bytes of activations", bytes),
                              "use a shorter sequence or a smaller batch.micro"});
           },
       .reason = "",
       .source = kLimit,
       .after = {"model-range", "job-range"}},
  };
}

}  // namespace

Rules parallel_rules() {
  Rules rules = tensor_rules();
  for (const Rules& more : {expert_rules(), batch_rules()}) rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

}  // namespace ebb::rule_lists
