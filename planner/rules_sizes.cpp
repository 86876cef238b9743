// Ranges. The upper limits are far above any real job. They keep every product below inside int64, and lists and loops
// small.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "planner/rule_lists.hpp"

namespace ebb::rule_lists {

namespace {

struct Count {
  const char* key;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most;
};

constexpr std::int64_t kMostRanks = 1 << 18;
constexpr std::int64_t kMostLayers = 4096;
constexpr std::int64_t kMostExperts = 1 << 14;
constexpr std::int64_t kMostWidth = 1 << 24;
constexpr double kMostElements = 1e15;

void require_in_range(Findings& out, std::initializer_list<Count> counts) {
  for (const Count& count : counts) {
    if (count.value < count.least)
      out.push_back(
          {fmt::format("{} is too small", count.value), fmt::format("use {} or more", count.least), count.key});
    if (count.value > count.most)
      out.push_back(
          {fmt::format("{} is out of range", count.value), fmt::format("use at most {}", count.most), count.key});
  }
}

void find_model_ranges(const Situation& s, Findings& out) {
  const ModelSpec& model = s.job.model;
  require_in_range(out, {{"model.layers", model.layers, 1, kMostLayers},
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
    require_in_range(out, {{"model.moe.experts", model.moe->experts, 1, kMostExperts},
                           {"model.moe.ffn", model.moe->ffn, 1, kMostWidth},
                           {"model.moe.shared_ffn", model.moe->shared_ffn, 0, kMostWidth},
                           {"model.moe.latent", model.moe->latent, 0, kMostWidth}});
  if (model.mla)
    require_in_range(out, {{"model.mla.q_lora_rank", model.mla->q_lora_rank, 0, kMostWidth},
                           {"model.mla.kv_lora_rank", model.mla->kv_lora_rank, 1, kMostWidth},
                           {"model.mla.qk_head_dim", model.mla->qk_head_dim, 1, kMostWidth},
                           {"model.mla.qk_rope_head_dim", model.mla->qk_rope_head_dim, 0, kMostWidth},
                           {"model.mla.v_head_dim", model.mla->v_head_dim, 1, kMostWidth}});
}

void find_job_ranges(const Situation& s, Findings& out) {
  const Parallel& p = s.job.parallel;
  require_in_range(out, {{"parallel.gpus", p.gpus, 1, kMostRanks},
                         {"parallel.tensor", p.tensor, 1, kMostRanks},
                         {"parallel.pipeline", p.pipeline, 1, kMostRanks},
                         {"parallel.virtual_pipeline", p.virtual_pipeline, 1, kMostLayers},
                         {"parallel.context", p.context, 1, kMostRanks},
                         {"parallel.expert", p.expert, 1, kMostRanks},
                         {"parallel.expert_tensor", p.expert_tensor, 1, kMostRanks},
                         {"parallel.optimizer_instances", p.optimizer_instances, 1, kMostRanks},
                         {"parallel.micro_batch_group", p.micro_batch_group, 0, 1 << 30},
                         {"batch.micro", s.job.batch.micro, 1, 1 << 20},
                         {"batch.global", s.job.batch.global, 1, 1 << 30},
                         {"batch.sequence", s.job.batch.sequence, 1, 1 << 30}});
}

}  // namespace

std::string nearest_divisors(std::int64_t number, std::int64_t wanted) {
  std::int64_t below = std::clamp<std::int64_t>(wanted, 1, number);
  while (number % below != 0) --below;
  std::int64_t above = std::clamp<std::int64_t>(wanted, 1, number);
  const std::int64_t last = std::min(number, 64 * above);  // a divisor further away helps nobody
  while (above < last && number % above != 0) ++above;
  return number % above != 0 || below == above ? fmt::format("{}", below) : fmt::format("{} or {}", below, above);
}

std::string nearest_multiples(std::int64_t step, std::int64_t wanted) {
  const std::int64_t below = wanted / step * step;
  return below == 0 ? fmt::format("{}", step) : fmt::format("{} or {}", below, below + step);
}

void require_divisor(Findings& out, std::int64_t size, std::int64_t number, const char* what) {
  if (number % size == 0) return;
  out.push_back({fmt::format("{} does not divide the {} {}", size, number, what),
                 fmt::format("use {}", nearest_divisors(number, size))});
}

double rough_elements(const ModelSpec& model) {
  const auto d = [](std::int64_t n) { return static_cast<double>(n); };
  double layer = d(model.hidden) * (4 * d(model.heads) * d(model.head_dim) + 3 * d(model.ffn));
  if (model.moe) layer += 3 * d(model.hidden) * (d(model.moe->experts) * d(model.moe->ffn) + d(model.moe->shared_ffn));
  return (d(model.layers) + d(model.mtp_layers())) * layer + 2 * d(model.vocab) * d(model.hidden);
}

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

Rules size_rules() {
  return {
      {.id = "model-range", .key = "model", .find = find_model_ranges, .reason = "", .source = kLimit},
      {.id = "model-size",
       .key = "model",
       .find =
           [](const Situation& s, Findings& out) {
             if (rough_elements(s.job.model) > kMostElements)
               out.push_back({fmt::format("has about {:.0e} parameters", rough_elements(s.job.model)),
                              "Ebb plans models of up to 1e15"});
           },
       .reason = "",
       .source = kLimit,
       .after = {"model-range"}},
      {.id = "job-range", .key = "parallel", .find = find_job_ranges, .reason = "", .source = kLimit},
  };
}

}  // namespace ebb::rule_lists
