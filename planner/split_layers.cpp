// Layers of each pipeline rank without a layout string. Source: Megatron-LM main d98e8a64dd,
// core/transformer/transformer_block.py (get_num_layers_to_build), core/transformer/transformer_layer.py
// (get_transformer_layer_offset).
//
// Rank r has n(r) layers in equal parts, one for each of its virtual stages: layers / pipeline, or what is given for
// the first and last rank and an equal share of the rest for those between. Virtual stage c of all ranks comes before
// virtual stage c + 1 of any.
// With account_for_embedding (_loss) the embedding (the loss) takes the place of one layer: the first (last) virtual
// stage has one less, and layers, embedding and loss together are split evenly.
#include <fmt/format.h>

#include <numeric>

#include "models/errors.hpp"
#include "planner/pipeline_layout.hpp"

namespace ebb {

namespace {

[[noreturn]] void reject(const Job& job, const char* key, const std::string& problem, const std::string& cure) {
  throw InputError(job.place_of(key), problem, cure);
}

/// Places for layers (and for the embedding and the loss where they count) on each pipeline rank.
std::vector<std::int64_t> even_places(const Job& job) {
  const Parallel& p = job.parallel;
  const std::int64_t places = job.model.layers + (p.account_for_embedding ? 1 : 0) + (p.account_for_loss ? 1 : 0);
  const std::int64_t stages = p.pipeline * p.virtual_pipeline;
  if (places % stages != 0) {
    const char* counted = places == job.model.layers ? "" : " (with embedding or loss counted)";
    reject(job, p.virtual_pipeline == 1 ? "parallel.pipeline" : "parallel.virtual_pipeline",
           fmt::format("{} layers{} do not divide into {} pipeline stages", places, counted, stages),
           "choose sizes that divide the layers or give parallel.pipeline_layout");
  }
  return std::vector<std::int64_t>(static_cast<std::size_t>(p.pipeline), places / p.pipeline);
}

std::vector<std::int64_t> uneven_places(const Job& job) {
  const Parallel& p = job.parallel;
  const std::int64_t first = p.first_stage_layers.value_or(0);
  const std::int64_t last = p.last_stage_layers.value_or(0);
  const std::int64_t between = p.pipeline - (p.first_stage_layers ? 1 : 0) - (p.last_stage_layers ? 1 : 0);
  const std::int64_t rest = job.model.layers - first - last;
  const char* key = p.first_stage_layers ? "parallel.first_stage_layers" : "parallel.last_stage_layers";
  if (p.account_for_embedding || p.account_for_loss)
    reject(job, key, "layers of the first or last stage cannot be given where embedding or loss count as layers",
           "leave one of them out");
  const bool fits = between == 0 ? rest == 0 : between > 0 && rest > 0 && rest % between == 0;
  if (!fits)
    reject(job, key,
           fmt::format("{} layers less {} and {} on the ends do not divide over {} stages between them",
                       job.model.layers, first, last, between),
           "choose numbers that leave a multiple, or give parallel.pipeline_layout");
  std::vector<std::int64_t> places(static_cast<std::size_t>(p.pipeline), between == 0 ? 0 : rest / between);
  if (p.first_stage_layers) places.front() = first;
  if (p.last_stage_layers) places.back() = last;
  for (const std::int64_t count : places)
    if (count % p.virtual_pipeline != 0)
      reject(job, "parallel.virtual_pipeline",
             fmt::format("{} layers of one rank do not divide into {} virtual stages", count, p.virtual_pipeline),
             "choose sizes that divide, or give parallel.pipeline_layout");
  return places;
}

}  // namespace

std::vector<ModelChunk> split_layers(const Job& job, std::int64_t pipeline_rank) {
  const Parallel& p = job.parallel;
  const bool given = p.first_stage_layers || p.last_stage_layers;
  std::vector<std::int64_t> places = given ? uneven_places(job) : even_places(job);
  for (std::int64_t& count : places) count /= p.virtual_pipeline;
  const std::int64_t one_round = std::accumulate(places.begin(), places.end(), std::int64_t{0});
  const auto rank = static_cast<std::size_t>(pipeline_rank);
  const std::int64_t before = std::accumulate(places.begin(), places.begin() + pipeline_rank, std::int64_t{0});

  std::vector<ModelChunk> chunks;
  for (std::int64_t c = 0; c < p.virtual_pipeline; ++c) {
    ModelChunk chunk;
    chunk.embedding = pipeline_rank == 0 && c == 0;
    chunk.output = pipeline_rank == p.pipeline - 1 && c == p.virtual_pipeline - 1;
    chunk.mtp_layers = chunk.output ? job.model.mtp_layers() : 0;
    std::int64_t layer = c * one_round + before - (p.account_for_embedding && !chunk.embedding ? 1 : 0);
    std::int64_t count = places[rank];
    if (p.account_for_embedding && chunk.embedding) --count;
    if (p.account_for_loss && chunk.output) --count;
    for (std::int64_t i = 0; i < count; ++i) chunk.decoder_layers.push_back(layer++);
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

}  // namespace ebb
