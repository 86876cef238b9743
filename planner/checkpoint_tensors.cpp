#include "planner/checkpoint_tensors.hpp"

#include <algorithm>

#include "planner/chunking.hpp"
#include "planner/fp8_load.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"

namespace ebb {

namespace {

/// A remainder (int16) is handed on as it is.
bool unscales_masters(const Precision& precision) {
  return precision.optimizer_holds_masters() && !precision.keeps_remainders() && precision.master != Dtype::fp32;
}

Bytes allocated(const RankModel& rank, const TensorSizes& sizes) {
  Bytes sum{0};
  for (const std::int64_t size : sizes) sum += allocated_tensors(rank.shards, size);
  return sum;
}

/// State of a shard passes the device as a whole in a load.
bool state_on_device(Policy policy) {
  return policy == Policy::resident || policy == Policy::full_reload || policy == Policy::chunked;
}

/// Optimizer state that never leaves the device.
Bytes staying_state(const RankModel& rank, const Candidate& candidate) {
  const Precision& precision = rank.job->precision;
  if (candidate.policy == Policy::resident) return allocated_state(precision, rank.shards, kAllState);
  if (candidate.policy == Policy::windowed) {
    std::vector<Shard> staying;
    const std::vector<bool> moves = offloaded_by_fraction(rank.shards, candidate.fraction, precision.state_bytes());
    for (std::size_t i = 0; i < moves.size(); ++i)
      if (!moves[i]) staying.push_back(rank.shards[i]);
    return allocated_state(precision, staying, kAllState);
  }
  if (candidate.policy != Policy::cpu_adam) return {0};
  const std::span<const Shard> shards(rank.shards);
  return allocated_state(precision, shards.subspan(shards_on_host(rank, candidate.fraction)), kAllState);
}

}  // namespace

Bytes load_peak(const RankModel& rank, const Candidate& candidate, Start start) {
  if (start == Start::fresh) return {0};
  const Job& job = *rank.job;
  const Bytes peak =
      rank.footprint.built + quantized_load_bytes(job, *rank.stage, load_targets_of(candidate.policy)).device;
  if (start != Start::resume)
    return candidate.policy == Policy::resident ? peak + allocated_state(job.precision, rank.shards, kMaster) : peak;
  if (!state_on_device(candidate.policy)) return peak + staying_state(rank, candidate);
  return peak + allocated_state(job.precision, rank.shards, kAllState) + allocated(rank, reload_tensors(job)) +
         allocated(rank, handed_over_tensors(job));
}

Bytes save_peak(const RankModel& rank, const Candidate& candidate) {
  const Job& job = *rank.job;
  const BucketGather gather = save_gather(job, *rank.stage);
  Bytes peak = rank.footprint.resident_total() + staying_state(rank, candidate) +
               bytes_of(gather.piece, 4) * (gather.pieces + (gather.pieces > 0 ? 1 : 0));
  if (candidate.policy == Policy::full_reload) peak += allocated_state(job.precision, rank.shards, kAllState);
  if (candidate.policy == Policy::resident && job.checkpoint.save_optimizer)
    peak += std::max(allocated(rank, unscaled_tensors(job)), allocated(rank, handed_over_tensors(job)));
  return peak;
}

bool has_fused_state_dict(const Job& job) { return job.compute.attention != Attention::local; }

TensorSizes scaffold_tensors(const Job& job) {
  if (!has_fused_state_dict(job)) return {};
  const Precision& precision = job.precision;
  TensorSizes sizes = {size_of(precision.exp_avg), size_of(precision.exp_avg_sq)};
  if (precision.optimizer_holds_masters()) sizes.push_back(precision.master_bytes());
  return sizes;
}

TensorSizes reload_tensors(const Job& job) {
  if (!has_fused_state_dict(job)) return {};
  const Precision& precision = job.precision;
  TensorSizes sizes = {4, 4};  // fp32: the new tensor; otherwise the un-scaled copy, after which the old one goes
  if (precision.optimizer_holds_masters()) sizes.push_back(precision.keeps_remainders() ? 2 : 4);
  return sizes;
}

TensorSizes unscaled_tensors(const Job& job) {
  if (!has_fused_state_dict(job)) return {};
  TensorSizes sizes;
  for (const Dtype moment : {job.precision.exp_avg, job.precision.exp_avg_sq})
    if (moment != Dtype::fp32) sizes.push_back(4);
  if (unscales_masters(job.precision)) sizes.push_back(4);
  return sizes;
}

TensorSizes handed_over_tensors(const Job& job) {
  return job.precision.optimizer_holds_masters() ? unscaled_tensors(job) : TensorSizes{};
}

bool save_allocates(const Job& job, const Candidate& candidate) {
  const CheckpointSettings& checkpoint = job.checkpoint;
  if (!checkpoint.save_optimizer) return false;
  const bool gathers =
      checkpoint.format == CheckpointFormat::torch_dist && checkpoint.sharding == CheckpointSharding::fully_reshardable;
  return gathers || (candidate.policy == Policy::resident && !unscaled_tensors(job).empty());
}

BucketGather save_gather(const Job& job, const StageLayout& stage) {
  const CheckpointSettings& checkpoint = job.checkpoint;
  if (!checkpoint.save_optimizer || checkpoint.format != CheckpointFormat::torch_dist ||
      checkpoint.sharding != CheckpointSharding::fully_reshardable)
    return {};
  BucketGather largest;
  for (const BufferLayout& buffer : stage.buffers)
    for (const Bucket& bucket : buffer.buckets) {
      const Numel piece{bucket.numel().value / buffer.shards};
      if (piece.value * buffer.shards > largest.piece.value * largest.pieces) largest = {piece, buffer.shards};
    }
  return largest;
}

}  // namespace ebb
