#include "planner/constraints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "models/quantity_text.hpp"
#include "planner/flags.hpp"
#include "planner/parameters.hpp"

namespace ebb {

namespace {

[[noreturn]] void reject(const Job& job, const std::string& key, const std::string& problem, const std::string& cure) {
  throw InputError(job.place_of(key), fmt::format("{}: {}", key, problem), cure);
}

/// "4", "4 or 8": the divisors of `number` nearest to `wanted`, below and above.
std::string nearest_divisors(std::int64_t number, std::int64_t wanted) {
  std::int64_t below = std::clamp<std::int64_t>(wanted, 1, number);
  while (number % below != 0) --below;
  std::int64_t above = std::clamp<std::int64_t>(wanted, 1, number);
  const std::int64_t last = std::min(number, 64 * above);  // a divisor further away helps nobody
  while (above < last && number % above != 0) ++above;
  return number % above != 0 || below == above ? fmt::format("{}", below) : fmt::format("{} or {}", below, above);
}

/// The multiples of `step` around `wanted`.
std::string nearest_multiples(std::int64_t step, std::int64_t wanted) {
  const std::int64_t below = wanted / step * step;
  return below == 0 ? fmt::format("{}", step) : fmt::format("{} or {}", below, below + step);
}

/// `size` (the value of `key`) must divide `number`, which is `what`.
void require_divisor(const Job& job, const std::string& key, std::int64_t size, std::int64_t number, const char* what) {
  if (number % size == 0) return;
  reject(job, key, fmt::format("{} does not divide the {} {}", size, number, what),
         fmt::format("use {}", nearest_divisors(number, size)));
}

struct Count {
  const char* key;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most;
};

// The upper limits are far above any real job. They keep every product below inside int64, and lists and loops small.
constexpr std::int64_t kMostRanks = 1 << 18;
constexpr std::int64_t kMostLayers = 4096;
constexpr std::int64_t kMostExperts = 1 << 14;
constexpr std::int64_t kMostExpertsOfRank = 1 << 17;  // over all layers
constexpr std::int64_t kMostWidth = 1 << 24;
constexpr double kMostElements = 1e15;
constexpr double kMostActivationBytes = 1e17;  // sums of a few such still fit 63 bits

void require_in_range(const Job& job, std::initializer_list<Count> counts) {
  for (const Count& count : counts) {
    if (count.value < count.least)
      reject(job, count.key, fmt::format("{} is too small", count.value), fmt::format("use {} or more", count.least));
    if (count.value > count.most)
      reject(job, count.key, fmt::format("{} is out of range", count.value), fmt::format("use at most {}", count.most));
  }
}

/// Elements of one model, roughly: only to tell models that exist from numbers that overflow.
double rough_elements(const ModelSpec& model) {
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  double layer = d(model.hidden) * (4 * d(model.heads) * d(model.head_dim) + 3 * d(model.ffn));
  if (model.moe) layer += 3 * d(model.hidden) * (d(model.moe->experts) * d(model.moe->ffn) + d(model.moe->shared_ffn));
  return (d(model.layers) + d(model.mtp_layers())) * layer + 2 * d(model.vocab) * d(model.hidden);
}

void check_model(const Job& job) {
  const ModelSpec& model = job.model;
  require_in_range(job, {{"model.layers", model.layers, 1, kMostLayers},
                         {"model.hidden", model.hidden, 1, kMostWidth},
                         {"model.ffn", model.ffn, 0, kMostWidth},
                         {"model.heads", model.heads, 1, kMostWidth},
                         {"model.kv_heads", model.kv_heads, 0, kMostWidth},
                         {"model.head_dim", model.head_dim, 0, kMostWidth},
                         {"model.vocab", model.vocab, 1, 1 << 28},
                         {"model.vocab_divisible_by", model.vocab_divisible_by, 1, kMostWidth},
                         {"model.max_positions", model.max_positions, 0, 1 << 30},
                         {"model.mtp.layers", model.mtp_layers(), 0, kMostLayers}});
  if (model.moe)
    require_in_range(job, {{"model.moe.experts", model.moe->experts, 1, kMostExperts},
                           {"model.moe.ffn", model.moe->ffn, 1, kMostWidth},
                           {"model.moe.shared_ffn", model.moe->shared_ffn, 0, kMostWidth},
                           {"model.moe.latent", model.moe->latent, 0, kMostWidth}});
  if (model.mla)
    require_in_range(job, {{"model.mla.q_lora_rank", model.mla->q_lora_rank, 0, kMostWidth},
                           {"model.mla.kv_lora_rank", model.mla->kv_lora_rank, 1, kMostWidth},
                           {"model.mla.qk_head_dim", model.mla->qk_head_dim, 1, kMostWidth},
                           {"model.mla.qk_rope_head_dim", model.mla->qk_rope_head_dim, 0, kMostWidth},
                           {"model.mla.v_head_dim", model.mla->v_head_dim, 1, kMostWidth}});
  if (rough_elements(model) > kMostElements)
    reject(job, "model", fmt::format("has about {:.0e} parameters", rough_elements(model)),
           "Ebb plans models of up to 1e15");
}

void check_sizes(const Job& job) {
  const Parallel& p = job.parallel;
  require_in_range(job, {{"parallel.gpus", p.gpus, 1, kMostRanks},
                         {"parallel.tensor", p.tensor, 1, kMostRanks},
                         {"parallel.pipeline", p.pipeline, 1, kMostRanks},
                         {"parallel.virtual_pipeline", p.virtual_pipeline, 1, kMostLayers},
                         {"parallel.context", p.context, 1, kMostRanks},
                         {"parallel.expert", p.expert, 1, kMostRanks},
                         {"parallel.expert_tensor", p.expert_tensor, 1, kMostRanks},
                         {"parallel.optimizer_instances", p.optimizer_instances, 1, kMostRanks},
                         {"batch.micro", job.batch.micro, 1, 1 << 20},
                         {"batch.global", job.batch.global, 1, 1 << 30},
                         {"batch.sequence", job.batch.sequence, 1, 1 << 30}});
}

void check_world(const Job& job) {
  const Parallel& p = job.parallel;
  // Two factors of at most 2^18 each fit; the third only after the first two are known to fit into the world.
  const auto fits = [&](std::int64_t a, std::int64_t b, std::int64_t c, const char* names) {
    const bool too_large = a * b > p.gpus || a * b * c > p.gpus;
    if (!too_large && p.gpus % (a * b * c) == 0) return;
    const std::string product = fmt::format("{} ({} x {} x {})", names, a, b, c);
    if (too_large)
      reject(job, "parallel.gpus", fmt::format("{} GPUs are fewer than {}", p.gpus, product),
             "use more GPUs or smaller parallel sizes");
    reject(job, "parallel.gpus", fmt::format("{} GPUs are not a multiple of {}", p.gpus, product),
           fmt::format("use {} GPUs", nearest_multiples(a * b * c, p.gpus)));
  };
  fits(p.tensor, p.pipeline, p.context, "tensor x pipeline x context");
  fits(p.expert_tensor, p.expert, p.pipeline, "expert_tensor x expert x pipeline");
}

void check_pipeline(const Job& job) {
  const Parallel& p = job.parallel;
  if (p.virtual_pipeline > 1 && p.pipeline == 1)
    reject(job, "parallel.virtual_pipeline", fmt::format("{} needs pipeline > 1", p.virtual_pipeline),
           "set pipeline to 2 or more, or virtual_pipeline to 1");
  // The counts of a layout string and of uneven stages are checked where they are read (model_chunks).
  if (!p.pipeline_layout.empty() || p.first_stage_layers || p.last_stage_layers || p.account_for_embedding ||
      p.account_for_loss) {
    for (std::int64_t rank = 0; rank < p.pipeline; ++rank) model_chunks(job, rank);
    return;
  }
  const std::int64_t stages = p.pipeline * p.virtual_pipeline;
  if (job.model.layers % stages == 0) return;
  const std::string what = fmt::format("{} layers do not divide over pipeline {} x virtual_pipeline {}",
                                       job.model.layers, p.pipeline, p.virtual_pipeline);
  reject(
      job, "parallel.pipeline", what,
      fmt::format("use a product of {}, or give parallel.pipeline_layout", nearest_divisors(job.model.layers, stages)));
}

void check_tensor(const Job& job) {
  const ModelSpec& model = job.model;
  const std::int64_t tensor = job.parallel.tensor;
  require_divisor(job, "parallel.tensor", tensor, model.heads, "attention heads");
  // With fewer query groups than tensor ranks a group's rows of the fused projection are split over several ranks.
  if (!model.mla && model.kv_heads % tensor != 0 && tensor % std::max<std::int64_t>(model.kv_heads, 1) != 0)
    reject(job, "parallel.tensor",
           fmt::format("{} is neither a divisor nor a multiple of the {} kv_heads", tensor, model.kv_heads),
           fmt::format("use {}", nearest_divisors(model.kv_heads, tensor)));
  if (!model.mla)
    require_divisor(job, "parallel.tensor", tensor, (model.heads + 2 * model.kv_heads) * model.head_dim,
                    "rows of the fused query, key and value projection");
  if (model.mtp_layers() > 0)
    require_divisor(job, "parallel.tensor", tensor, model.hidden, "rows of a prediction layer's projection (hidden)");
  bool any_dense = false;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) any_dense = any_dense || !model.layer_is_moe(layer);
  if (any_dense) require_divisor(job, "parallel.tensor", tensor, model.ffn, "columns of ffn");
  if (model.moe && model.moe->shared_ffn > 0)
    require_divisor(job, "parallel.tensor", tensor, model.moe->shared_ffn, "columns of the shared experts' ffn");
  if (job.parallel.sequence && tensor == 1)
    reject(job, "parallel.sequence", "sequence parallelism needs tensor > 1", "set sequence: false or tensor: 2");
}

void check_experts(const Job& job) {
  const Parallel& p = job.parallel;
  if (!job.model.moe) {
    if (p.expert > 1) reject(job, "parallel.expert", "the model has no experts", "set expert: 1");
    return;
  }
  require_divisor(job, "parallel.expert", p.expert, job.model.moe->experts, "experts");
  if (job.model.layers * (job.model.moe->experts / p.expert) > kMostExpertsOfRank)
    reject(job, "parallel.expert",
           fmt::format("{} layers of {} experts are too many for one rank", job.model.layers,
                       job.model.moe->experts / p.expert),
           "use more expert parallelism");
  require_divisor(job, "parallel.expert_tensor", p.expert_tensor, job.model.moe->ffn, "columns of an expert's ffn");
  if (p.tensor > 1 && !p.sequence)
    reject(job, "parallel.sequence", "a mixture of experts with tensor > 1 trains with sequence parallelism only",
           "set sequence: true");
}

void check_batch(const Job& job) {
  const Parallel& p = job.parallel;
  const Batch& b = job.batch;
  if (p.context > 1 && b.sequence % (2 * p.context) != 0)
    reject(job, "batch.sequence", fmt::format("{} is not a multiple of 2 x context ({})", b.sequence, 2 * p.context),
           fmt::format("use {}", nearest_multiples(2 * p.context, b.sequence)));
  if (p.sequence && b.sequence / p.context % p.tensor != 0)
    reject(job, "batch.sequence",
           fmt::format("{} over context {} is not a multiple of tensor {}", b.sequence, p.context, p.tensor),
           fmt::format("use {}", nearest_multiples(2 * p.context * p.tensor, b.sequence)));
  if (job.model.positions == Positions::learned && b.sequence > job.model.max_positions)
    reject(job, "batch.sequence",
           fmt::format("{} is longer than the model's {} learned positions", b.sequence, job.model.max_positions),
           fmt::format("use at most {}", job.model.max_positions));
  const std::int64_t one_each = b.micro * p.data();
  if (b.global % one_each != 0)
    reject(job, "batch.global",
           fmt::format("{} is not a multiple of micro x data-parallel size ({} x {})", b.global, b.micro, p.data()),
           fmt::format("use {}", nearest_multiples(one_each, b.global)));
  // Source: forward_backward_pipelining_with_interleaving, with groups of `pipeline` micro-batches.
  // A last group may be smaller than the others, but not than `pipeline`.
  const std::int64_t group = std::max(p.micro_batch_group, p.pipeline);
  const std::int64_t last_group = job.micro_batches() % group;
  if (p.virtual_pipeline > 1 && (job.micro_batches() < group || (last_group > 0 && last_group < p.pipeline)))
    reject(job, "batch.global",
           fmt::format("{} micro-batches are not a multiple of pipeline {}, which virtual_pipeline needs",
                       job.micro_batches(), p.pipeline),
           fmt::format("use {}", nearest_multiples(one_each * p.pipeline, b.global)));
}

/// Saved activations of all layers and the logits, roughly and from above: only to tell jobs from numbers that
/// overflow.
double rough_activation_bytes(const Job& job) {
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  const ModelSpec& m = job.model;
  const double tokens = d(job.batch.micro) * d(job.batch.sequence);
  double width = 16 * d(m.hidden) + 6 * d(m.ffn) + 8 * d(m.heads) * d(std::max<std::int64_t>(m.head_dim, 1));
  const double fullest = std::max(job.experts.imbalance, job.experts.capacity_factor.value_or(1));
  if (m.moe) width += fullest * d(m.moe->top_k) * (4 * d(m.hidden) + 6 * d(m.moe->ffn)) + 6 * d(m.moe->shared_ffn);
  if (m.mla) width += 8 * d(m.heads) * d(m.mla->qk_head_dim + m.mla->qk_rope_head_dim + m.mla->v_head_dim);
  if (job.compute.attention != Attention::flash) width += 8 * d(m.heads) * d(job.batch.sequence);
  return 4 * tokens * ((d(m.layers) + d(m.mtp_layers())) * width * d(job.parallel.pipeline) + 4 * d(m.vocab));
}

void check_activations(const Job& job) {
  const double bytes = rough_activation_bytes(job);
  if (bytes > kMostActivationBytes)
    reject(job, "batch.sequence", fmt::format("a micro-batch would save about {:.0e} bytes of activations", bytes),
           "use a shorter sequence or a smaller batch.micro");
}

void check_instances(const Job& job) {
  const Parallel& p = job.parallel;
  require_divisor(job, "parallel.optimizer_instances", p.optimizer_instances, p.data() * p.context,
                  "ranks of data x context parallelism");
  if (job.model.moe)
    require_divisor(job, "parallel.optimizer_instances", p.optimizer_instances, p.expert_data(),
                    "ranks of expert data parallelism");
  if (p.overlap_param_gather && !p.overlap_grad_reduce)
    reject(job, "parallel.overlap_param_gather", "needs overlap_grad_reduce",
           "set overlap_grad_reduce: true or overlap_param_gather: false");
  if (p.bucket_numel && p.bucket_numel->value < 1)
    reject(job, "parallel.bucket_numel", "is not positive", "use 40000000 or leave it out");
}

void check_precision(const Job& job) {
  const Precision& p = job.precision;
  if (p.params == Dtype::fp8)
    reject(job, "precision.params", "fp8 parameters come from fp8.param_gather",
           "set params: bf16 and fp8: {recipe: blockwise, param_gather: true}");
  if (p.grads != Dtype::fp32 && p.grads != Dtype::bf16 && p.grads != Dtype::fp16)
    reject(job, "precision.grads", fmt::format("gradients cannot be {}", name_of(p.grads)), "use fp32, bf16 or fp16");
  if (p.master == Dtype::fp8) reject(job, "precision.master", "master weights cannot be fp8", "use fp32");
  if (p.fp8_param_gather && p.fp8 == Fp8Recipe::none)
    reject(job, "precision.fp8.param_gather", "needs an fp8 recipe",
           "set fp8.recipe to delayed, tensorwise, blockwise or mxfp8");
}

void check_recompute(const Job& job) {
  const Recompute& r = job.recompute;
  if (r.granularity != RecomputeGranularity::full) return;
  if (r.method != "uniform" && r.method != "block")
    reject(job, "recompute.method", fmt::format("\"{}\" is no method of full recomputation", r.method),
           "use uniform or block");
  if (r.layers < 1 || r.layers > job.model.layers)
    reject(job, "recompute.layers", fmt::format("{} is outside the model's layers", r.layers),
           fmt::format("use 1 to {}", job.model.layers));
}

void check_budget(const Job& job) {
  if (job.budget.device && job.budget.device->value <= 0)
    reject(job, "budget.device", "is not positive", "use for example 130GiB, or leave it out");
  if (job.budget.host && job.budget.host->value < 0)
    reject(job, "budget.host", "is negative", "use for example 1800GiB, or leave it out");
  const Bytes device = job.cluster.gpu.memory.value;
  if (job.budget.device && *job.budget.device > device)
    reject(job, "budget.device",
           fmt::format("{} is more than the {} of a GPU of {}", format_bytes(*job.budget.device), format_bytes(device),
                       job.cluster.name),
           "use less, or leave it out");
  const Bytes host = job.cluster.host.memory.value;
  if (job.budget.host && *job.budget.host > host)
    reject(job, "budget.host",
           fmt::format("{} is more than the {} of a host of {}", format_bytes(*job.budget.host), format_bytes(host),
                       job.cluster.name),
           "use less, or leave it out");
}

/// What the job itself fixes must be in range; a policy that it names must suit its precision.
void check_offload(const Job& job) {
  const Offload& o = job.offload;
  const auto place = [&](const char* key) { return job.place_of(std::string("offload.") + key); };
  const RequestPlaces places = {place("policy"), place("chunk_numel"), place("chunk_size_mb"), place("fraction"),
                                place("slots")};
  check_request({o.policy, o.chunk_numel, o.chunk_size_mb, o.fraction, o.slots}, places);
  if (!o.policy) return;
  Candidate candidate;
  candidate.policy = *o.policy;
  const std::string objection = objection_to(job, candidate);
  if (!objection.empty())
    reject(job, "offload.policy", fmt::format("{} does not suit this job's precision", name_of(*o.policy)), objection);
}

}  // namespace

void check(const Job& job) {
  check_model(job);
  check_sizes(job);
  check_world(job);
  check_pipeline(job);
  check_tensor(job);
  check_experts(job);
  check_batch(job);
  check_activations(job);
  check_instances(job);
  check_precision(job);
  check_recompute(job);
  check_budget(job);
  check_offload(job);
}

}  // namespace ebb
