#include "planner/lower.hpp"
#include "planner/optimizer_traffic.hpp"
#include "sim/torch_allocator.hpp"

namespace ebb {

RankModel rank_model(const Job& job, const StageLayout& stage, std::int64_t rank) {
  const RankCoordinates at = coordinates_of(job, rank);
  RankModel model;
  model.job = &job;
  model.stage = &stage;
  model.rank = rank;
  model.shards = rank_shards(stage, at.dense_shard, at.expert_shard);
  model.owned = owned(model.shards);
  model.footprint = footprint_of(job, stage, model.owned);
  // Scales of states that are not fp32 are tensors of one number, and stay on the device under every policy.
  const auto scales = static_cast<std::int64_t>(model.shards.size()) * scale_tensors(job.precision);
  if (scales > 0) model.footprint.resident.push_back({"state scales", sim::allocated_bytes({4}) * scales});
  model.compute = compute_time(job, at.pipeline);
  return model;
}

}  // namespace ebb
