#include "planner/ranks.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "models/errors.hpp"
#include "planner/tidal_room.hpp"

namespace ebb {

namespace {

bool same_parameter(const Parameter& a, const Parameter& b) {
  return a.rows == b.rows && a.columns == b.columns && a.expert == b.expert && a.decayed == b.decayed &&
         a.quantized == b.quantized && a.embedding_or_output == b.embedding_or_output;
}

bool same_bucket(const Bucket& a, const Bucket& b) { return a.start == b.start && a.end == b.end; }

bool same_buffer(const BufferLayout& a, const BufferLayout& b) {
  return a.model_chunk == b.model_chunk && a.expert == b.expert && a.quantized == b.quantized &&
         std::equal(a.buckets.begin(), a.buckets.end(), b.buckets.begin(), b.buckets.end(), same_bucket);
}

/// Buckets and parameters in order determine every range, so that the ranks of both stages own the same shards.
bool same_layout(const StageLayout& a, const StageLayout& b) {
  return std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(), b.parameters.end(),
                    same_parameter) &&
         std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(), same_buffer);
}

/// What two stages of one layout can still differ in.
struct Load {
  Footprint footprint;
  ComputeTime compute;

  bool covers(const Load& other) const {
    return footprint.resident_total() >= other.footprint.resident_total() &&
           footprint.lazy_columns >= other.footprint.lazy_columns &&
           footprint.activations >= other.footprint.activations && footprint.logits >= other.footprint.logits &&
           compute.forward >= other.compute.forward && compute.backward >= other.compute.backward;
  }
};

}  // namespace

RankSet::RankSet(const Job& job) : job_(&job) {
  keep_stages(job);
  for (const StageLayout& stage : stages_) add_ranks(job, stage);
  EBB_ASSERT(!ranks_.empty());
  share_tidal_cap(ranks_);
}

void RankSet::keep_stages(const Job& job) {
  std::vector<Load> loads;
  for (std::int64_t pipeline = 0; pipeline < job.parallel.pipeline; ++pipeline) {
    StageLayout stage = stage_layout(job, pipeline);
    Load load{footprint_of(job, stage, Numel{0}), compute_time(job, pipeline)};
    std::size_t covering = 0;
    while (covering < stages_.size() && !(loads[covering].covers(load) && same_layout(stages_[covering], stage)))
      ++covering;
    stage_of_pipeline_.push_back(covering);
    if (covering < stages_.size()) continue;
    stages_.push_back(std::move(stage));
    loads.push_back(std::move(load));
  }
}

namespace {

/// Everything about a shard that decides what happens to it, in one number: two shards with equal ones are moved,
/// packed and stepped alike.
std::int64_t kind_of(const Shard& shard) {
  static_assert(kMostParameters < (std::int64_t{1} << 56));  // the product fits
  return shard.numel.value * 64 + shard.optimizer * 16 + shard.group * 4 + shard.moments;
}

/// Ranks of a stage differ in what they own. Walking a stage's step for its activations (activations.hpp) is the dear
/// part of a model: once a stage. Precondition: `other`, of the same stage, owns something.
RankModel of_same_stage(const RankModel& other, std::int64_t rank, std::vector<Shard> shards) {
  RankModel model;
  model.job = other.job;
  model.stage = other.stage;
  model.rank = rank;
  model.owned = owned(shards);
  model.shards = std::move(shards);
  model.padded = other.padded;
  model.footprint = other.footprint;
  model.footprint.step_temporaries =
      bytes_of(model.owned, other.footprint.step_temporaries.value / other.owned.value);  // copies of gradients
  model.compute = other.compute;
  model.tidal = make_tidal_memory(other.tidal.get());
  return model;
}

}  // namespace

void RankSet::add_ranks(const Job& job, const StageLayout& stage) {
  std::map<Place, std::size_t>& places = model_of_.emplace_back();
  std::map<std::vector<std::int64_t>, std::size_t> kinds;
  std::vector<std::int64_t> kind;
  std::optional<std::size_t> known_rank;  // of this stage, and owning something
  // Pipeline ranks are the slowest to change, unless they are inside data-parallel ones.
  const std::int64_t size = job.parallel.gpus / job.parallel.pipeline;
  const bool inner = job.parallel.pipeline_inner;
  const std::int64_t first = inner ? 0 : stage.pipeline_rank * size;
  for (std::int64_t rank = first; rank < (inner ? job.parallel.gpus : first + size); ++rank) {
    const RankCoordinates at = coordinates_of(job, rank);
    EBB_ASSERT(inner || at.pipeline == stage.pipeline_rank);
    if (at.pipeline != stage.pipeline_rank) continue;
    const auto [place, is_new] = places.emplace(Place{at.dense_shard, at.expert_shard}, 0);
    if (!is_new) continue;
    kind.clear();
    std::vector<Shard> shards = rank_shards(stage, at.dense_shard, at.expert_shard);
    for (const Shard& shard : shards) kind.push_back(kind_of(shard));
    const auto [known, is_first] = kinds.emplace(kind, ranks_.size());
    if (is_first) {
      ranks_.push_back(known_rank ? of_same_stage(ranks_[*known_rank], rank, std::move(shards))
                                  : rank_model(job, stage, rank));
      if (ranks_.back().owned > Numel{0}) known_rank = known->second;
    }
    place->second = known->second;
  }
}

std::size_t RankSet::model_of(std::int64_t rank) const {
  const RankCoordinates at = coordinates_of(*job_, rank);
  const std::size_t stage = stage_of_pipeline_[static_cast<std::size_t>(at.pipeline)];
  return model_of_[stage].at({at.dense_shard, at.expert_shard});
}

}  // namespace ebb
