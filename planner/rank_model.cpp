#include "planner/lower.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/tidal_room.hpp"

namespace ebb {

RankModel rank_model(const Job& job, const StageLayout& stage, std::int64_t rank) {
  const RankCoordinates at = coordinates_of(job, rank);
  RankModel model;
  model.job = &job;
  model.stage = &stage;
  model.rank = rank;
  model.shards = rank_shards(stage, at.dense_shard, at.expert_shard);
  model.owned = owned(model.shards);
  model.padded = padded_order(job, stage);
  model.footprint = footprint_of(job, stage, model.owned);
  // Scales of states that are not fp32 are tensors of one number, and stay on the device under every policy.
  const Bytes scales = allocated_scales(job.precision, model.shards);
  if (scales.value > 0) model.footprint.resident.push_back({"state scales", scales});
  model.compute = compute_time(job, at.pipeline);
  model.tidal = make_tidal_memory();
  return model;
}

}  // namespace ebb
