// The world over its parallel sizes, and the model's layers over pipeline stages: the even split, uneven first and last
// stages, embedding and loss counted as layers, and the layout string.
#include <fmt/format.h>

#include <algorithm>

#include "planner/parameters.hpp"
#include "planner/rule_lists.hpp"

namespace ebb::rule_lists {

namespace {

/// Two factors of at most 2^18 each fit 63 bits; the third only after the first two are known to fit into the world.
void require_world(Findings& out, std::int64_t gpus, std::int64_t a, std::int64_t b, std::int64_t c,
                   const char* names) {
  const bool too_large = a * b > gpus || a * b * c > gpus;
  if (!too_large && gpus % (a * b * c) == 0) return;
  const std::string product = fmt::format("{} ({} x {} x {})", names, a, b, c);
  if (too_large)
    out.push_back({fmt::format("{} GPUs are fewer than {}", gpus, product), "use more GPUs or smaller parallel sizes"});
  else
    out.push_back({fmt::format("{} GPUs are not a multiple of {}", gpus, product),
                   fmt::format("use {} GPUs", nearest_multiples(a * b * c, gpus))});
}

bool uneven(const Parallel& p) { return p.first_stage_layers.has_value() || p.last_stage_layers.has_value(); }
bool accounts(const Parallel& p) { return p.account_for_embedding || p.account_for_loss; }

void find_even_split(const Situation& s, Findings& out) {
  const Parallel& p = s.job.parallel;
  if (!p.pipeline_layout.empty() || uneven(p)) return;
  const std::int64_t extra = (p.account_for_embedding ? 1 : 0) + (p.account_for_loss ? 1 : 0);
  const std::int64_t layers = s.job.model.layers + extra;
  const std::int64_t stages = p.pipeline * p.virtual_pipeline;
  if (layers % stages == 0) return;
  const std::string counted = extra == 0 ? "" : fmt::format(" (with embedding and loss as {} of them)", extra);
  out.push_back(
      {fmt::format("{} layers{} do not divide over pipeline {} x virtual_pipeline {}", layers, counted, p.pipeline,
                   p.virtual_pipeline),
       fmt::format("use a product of {}, or give parallel.pipeline_layout", nearest_divisors(layers, stages))});
}

/// First and last stage have the layers given, those between share the rest evenly, and each splits over its virtual
/// stages.
void find_uneven_split(const Situation& s, Findings& out) {
  const Parallel& p = s.job.parallel;
  if (!p.pipeline_layout.empty() || !uneven(p)) return;
  std::int64_t rest = s.job.model.layers;
  std::int64_t middle = p.pipeline;
  for (const auto& [given, key] : {std::pair{p.first_stage_layers, "parallel.first_stage_layers"},
                                   std::pair{p.last_stage_layers, "parallel.last_stage_layers"}}) {
    if (!given) continue;
    rest -= *given;
    --middle;
    if (*given < 1) out.push_back({fmt::format("{} is no number of layers", *given), "use 1 or more", key});
    if (*given % p.virtual_pipeline != 0)
      out.push_back({fmt::format("{} layers do not divide over virtual_pipeline {}", *given, p.virtual_pipeline),
                     fmt::format("use {}", nearest_multiples(p.virtual_pipeline, *given)), key});
  }
  if (!out.empty()) return;
  const char* key = p.first_stage_layers ? "parallel.first_stage_layers" : "parallel.last_stage_layers";
  const std::int64_t stages = middle * p.virtual_pipeline;
  if (rest < 0 || middle < 0 || (middle == 0 && rest != 0))
    out.push_back({fmt::format("first and last stage leave {} of the {} layers to {} stages between", rest,
                               s.job.model.layers, std::max<std::int64_t>(middle, 0)),
                   "use numbers that add up to the model's layers", key});
  else if (middle > 0 && rest % stages != 0)
    out.push_back({fmt::format("the {} layers between first and last stage do not divide over {} x virtual_pipeline {}",
                               rest, middle, p.virtual_pipeline),
                   fmt::format("leave a multiple of {}", stages), key});
}

void find_layout_misfit(const Situation& s, Findings& out) {
  if (s.job.parallel.pipeline_layout.empty()) return;
  Job bare;  // without places, so that the message names none
  bare.model = s.job.model;
  bare.parallel = s.job.parallel;
  try {
    model_chunks(bare, 0);
  } catch (const InputError& error) {
    out.push_back({error.what(), ""});
  }
}

}  // namespace

Rules pipeline_rules() {
  return {
      {.id = "world-dense",
       .key = "parallel.gpus",
       .find =
           [](const Situation& s, Findings& out) {
             const Parallel& p = s.job.parallel;
             require_world(out, p.gpus, p.tensor, p.pipeline, p.context, "tensor x pipeline x context");
           },
       .reason = "what is left is data parallelism",
       .source = "Megatron-LM main d98e8a64dd, megatron/training/arguments.py:448",
       .after = {"job-range"}},
      {.id = "world-expert",
       .key = "parallel.gpus",
       .find =
           [](const Situation& s, Findings& out) {
             const Parallel& p = s.job.parallel;
             require_world(out, p.gpus, p.expert_tensor, p.expert, p.pipeline, "expert_tensor x expert x pipeline");
           },
       .reason = "what is left is expert data parallelism",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/parallel_state.py, expert rank generator",
       .after = {"job-range"}},
      {.id = "virtual-needs-pipeline",
       .key = "parallel.virtual_pipeline",
       .find =
           [](const Situation& s, Findings& out) {
             const Parallel& p = s.job.parallel;
             if (p.virtual_pipeline > 1 && p.pipeline == 1)
               out.push_back({fmt::format("{} needs pipeline > 1", p.virtual_pipeline),
                              "set pipeline to 2 or more, or virtual_pipeline to 1"});
           },
       .reason = "the interleaved schedule passes activations between ranks",
       .source = kArguments,
       .after = {"job-range"}},
      {.id = "layout-alone",
       .key = "parallel.pipeline_layout",
       .find =
           [](const Situation& s, Findings& out) {
             const Parallel& p = s.job.parallel;
             if (!p.pipeline_layout.empty() && (uneven(p) || accounts(p)))
               out.push_back({"stands beside first_stage_layers, last_stage_layers or an account_for_ key",
                              "leave out either the layout or the others"});
           },
       .reason = "the layout says already what every stage holds",
       .source = kTransformerConfig},
      {.id = "uneven-without-account",
       .key = "parallel.first_stage_layers",
       .find =
           [](const Situation& s, Findings& out) {
             const Parallel& p = s.job.parallel;
             if (p.pipeline_layout.empty() && uneven(p) && accounts(p))
               out.push_back({"stands beside account_for_embedding or account_for_loss",
                              "leave out either the first and last stage's layers or the account_for_ keys",
                              p.first_stage_layers ? "" : "parallel.last_stage_layers"});
           },
       .reason = "both say what first and last stage hold",
       .source = kTransformerConfig},
      {.id = "layout-fits",
       .key = "parallel.pipeline_layout",
       .find = find_layout_misfit,
       .reason = "",
       .source = "Megatron-LM main d98e8a64dd, megatron/core/transformer/pipeline_parallel_layer_layout.py",
       .after = {"job-range", "model-range", "layout-alone"}},
      {.id = "even-split",
       .key = "parallel.pipeline",
       .find = find_even_split,
       .reason = "every stage holds the same number of layers",
       .source = kTransformerConfig,
       .after = {"job-range", "model-range"}},
      {.id = "uneven-split",
       .key = "parallel.first_stage_layers",
       .find = find_uneven_split,
       .reason = "the stages between first and last hold the same number of layers",
       .source = kTransformerConfig,
       .after = {"job-range", "model-range", "uneven-without-account"}},
  };
}

}  // namespace ebb::rule_lists
