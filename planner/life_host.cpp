#include "planner/life_host.hpp"

#include <algorithm>
#include <utility>

#include "planner/checkpoint_tensors.hpp"
#include "planner/fp8_load.hpp"
#include "planner/host_parts.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/tidal_pieces.hpp"

namespace ebb {

namespace {

bool is_first_of_group(const Job& job, std::int64_t rank, bool expert) {
  const RankCoordinates at = coordinates_of(job, rank);
  return (expert ? at.expert_shard : at.dense_shard) == 0;
}

/// Parameters are spread over the sharding group when they are saved (--ckpt-fully-parallel-save).
Bytes saved_parameters(const Job& job, const StageLayout& stage, std::int64_t rank) {
  const bool spread = job.checkpoint.format != CheckpointFormat::torch;
  Bytes sum{0};
  for (const BufferLayout& buffer : stage.buffers) {
    const Bytes all = bytes_of(buffer.unpadded, 2);
    if (spread)
      sum += Bytes{ceil_div(all.value, buffer.shards)};
    else if (is_first_of_group(job, rank, buffer.expert))
      sum += all;
  }
  return sum;
}

/// A state that the optimizer un-scales for the checkpoint counts as fp32.
std::int64_t saved_state_bytes(const Job& job) {
  const Precision& precision = job.precision;
  const bool unscaled = precision.optimizer_holds_masters();
  const auto size = [&](Dtype type) { return unscaled ? 4 : size_of(type); };
  return size(precision.exp_avg) + size(precision.exp_avg_sq) + (precision.params == Dtype::fp32 ? 0 : 4);
}

bool gathers_all(const Job& job) {
  return job.checkpoint.format == CheckpointFormat::torch_dist &&
         job.checkpoint.sharding == CheckpointSharding::fully_reshardable;
}

/// Three fp32 buffers of the whole group's elements, and while a bucket is gathered its share three times, the bucket
/// in pieces, and the bucket in one.
Bytes gathered_state(const Job& job, const StageLayout& stage, std::int64_t rank) {
  Bytes world{0};
  Bytes passing{0};
  for (const BufferLayout& buffer : stage.buffers) {
    const bool here = gathers_all(job) || is_first_of_group(job, rank, buffer.expert);
    if (here) world += bytes_of(buffer.unpadded, 12);
    for (const Bucket& bucket : buffer.buckets) {
      const Bytes share = bytes_of({bucket.numel().value / buffer.shards}, 12);
      passing = std::max(passing, share + bytes_of(bucket.numel(), here ? 8 : 0));
    }
  }
  return world + passing;
}

/// Owned elements whose state lies on the device when a save begins.
Numel state_on_device(const RankModel& model, const Candidate& candidate, const HostParts& parts) {
  switch (candidate.policy) {
    case Policy::resident:
    case Policy::full_reload:
      return model.owned;
    case Policy::cpu_adam: {
      const std::span<const Shard> shards(model.shards);
      return model.owned - owned(shards.first(shards_on_host(model, candidate.fraction)));
    }
    case Policy::windowed:
      return model.owned - Numel{parts.moments.asked.value / model.job->precision.moment_bytes()};
    case Policy::tidal:
      return model.owned - tidal_pieces(model, candidate)->on_host.numel();
    case Policy::chunked:
    case Policy::pipelined:
      return {0};
  }
  return {0};
}

Bytes save_copies(const RankModel& model, std::int64_t rank, Numel here) {
  const Job& job = *model.job;
  const Bytes parameters = saved_parameters(job, *model.stage, rank);
  if (!job.checkpoint.save_optimizer) return parameters;
  if (gathers_all(job) || job.checkpoint.format == CheckpointFormat::torch)
    return parameters + gathered_state(job, *model.stage, rank);
  Bytes copies = bytes_of(here, saved_state_bytes(job));
  for (const std::int64_t size : handed_over_tensors(job)) copies += bytes_of(model.owned - here, size);
  return parameters + copies;
}

/// Tensor by tensor in torch_dist; the legacy format reads whole files.
Bytes read_buffers(const RankModel& model, std::int64_t rank, Start start) {
  const Job& job = *model.job;
  if (job.checkpoint.format == CheckpointFormat::torch) return stored_bytes(model, rank, start == Start::resume);
  Numel largest{0};
  for (const Parameter& parameter : model.stage->parameters) largest = std::max(largest, parameter.numel());
  return bytes_of(largest, 2);
}

bool offloads_at_load(Policy policy) {
  return policy == Policy::chunked || policy == Policy::full_reload || policy == Policy::windowed;
}

}  // namespace

HostShare host_share(const RankModel& model, const Candidate& candidate) {
  HostParts parts = host_parts(model, candidate);
  const Numel on_device = state_on_device(model, candidate, parts);
  return {candidate.policy, std::move(parts), on_device};
}

Bytes stored_bytes(const RankModel& model, std::int64_t rank, bool optimizer) {
  const Job& job = *model.job;
  Bytes sum = saved_parameters(job, *model.stage, rank);
  if (!optimizer) return sum;
  if (job.checkpoint.format != CheckpointFormat::torch)
    return sum + bytes_of(model.owned, gathers_all(job) ? 12 : saved_state_bytes(job));
  for (const BufferLayout& buffer : model.stage->buffers)
    if (is_first_of_group(job, rank, buffer.expert)) sum += bytes_of(buffer.unpadded, 12);
  return sum;
}

Bytes bytes_from_device(const RankModel& model, std::int64_t rank, const Candidate& candidate) {
  const Job& job = *model.job;
  const Bytes parameters = saved_parameters(job, *model.stage, rank);
  if (!job.checkpoint.save_optimizer) return parameters;
  // What the group's ranks gather comes over from the device of each.
  if (gathers_all(job)) return parameters + gathered_state(job, *model.stage, rank);
  return parameters + bytes_of(host_share(model, candidate).on_device, saved_state_bytes(job));
}

HostUse host_use(const RankModel& model, std::int64_t rank, const Candidate& candidate, Phase phase, Start start) {
  return host_use(model, host_share(model, candidate), rank, phase, start);
}

HostUse host_use(const RankModel& model, const HostShare& share, std::int64_t rank, Phase phase, Start start) {
  const HostParts& parts = share.parts;
  const bool loads = start != Start::fresh;
  const bool masters_early = share.policy == Policy::chunked || share.policy == Policy::cpu_adam;
  HostUse use;
  use.pinned = parts.region;
  const bool after_load = phase != Phase::init && loads && offloads_at_load(share.policy);
  const bool stepping = phase != Phase::init && phase != Phase::load;
  if (masters_early || after_load || stepping) use.pinned += parts.masters;
  const bool resumed = after_load && start == Start::resume;
  // full-reload's moments first leave when the second step begins.
  const bool first = phase == Phase::first_step;
  if (resumed || (stepping && !(first && share.policy == Policy::full_reload))) use.pinned += parts.moments;
  const bool steps_on_host = stepping || (phase == Phase::load && start == Start::resume);
  if (steps_on_host) {
    use.pinned += parts.grads;
    use.pageable += parts.pageable;
  }
  // Transformer Engine keeps what FP8 weights were initialised from until masters are made (preserve_high_precision).
  if (phase == Phase::init) use.pageable += quantized_load_bytes(*model.job, *model.stage, LoadTargets::on_host).host;
  if (phase == Phase::save) use.pageable += save_copies(model, rank, share.on_device);
  if (phase == Phase::load) {
    use.pageable += read_buffers(model, rank, start);
    use.pageable += quantized_load_bytes(*model.job, *model.stage, load_targets_of(share.policy)).host;
  }
  return use;
}

HostTotals host_totals(const Job& job, const HostSet& hosts, std::span<const RankModel> ranks,
                       const Candidate& candidate, Phase phase, Start start) {
  HostTotals totals;
  Bytes most{0};
  for (const HostModel& host : hosts.hosts()) {
    std::vector<Bytes> held;
    Bytes pinned{0};
    Bytes pageable{0};
    for (std::size_t place = 0; place < host.class_of_place.size(); ++place) {
      const RankModel& model = ranks[host.models[host.class_of_place[place]]];
      const HostUse use = host_use(model, host.first_rank + static_cast<std::int64_t>(place), candidate, phase, start);
      held.push_back(use.pinned.held);
      pinned += use.pinned.held;
      pageable += use.pageable;
      totals.pinned = std::max(totals.pinned, use.pinned.held);
      totals.pageable = std::max(totals.pageable, use.pageable);
    }
    most = std::max(most, pinned + pageable);
    if (!totals.pinned_per_node.empty() && pinned <= totals.pinned_per_host) continue;
    totals.pinned_per_host = pinned;
    totals.pinned_per_node = sim::bytes_per_node(held, job.cluster);
  }
  totals.pageable_per_host = most - totals.pinned_per_host;
  return totals;
}

std::vector<std::string> host_limits(const Job& job, const HostSet& hosts, std::span<const RankModel> ranks,
                                     const Candidate& candidate) {
  std::vector<sim::PinnedLayout> most;
  Bytes held{-1};
  for (const HostModel& host : hosts.hosts()) {
    std::vector<sim::PinnedLayout> layouts;
    Bytes sum{0};
    for (const std::uint32_t place : host.class_of_place) {
      const RankModel& model = ranks[host.models[place]];
      layouts.push_back(host_use(model, model.rank, candidate, Phase::step, Start::fresh).pinned);
      sum += layouts.back().held;
    }
    if (sum <= held) continue;
    held = sum;
    most = std::move(layouts);
  }
  return sim::pinned_limits(most, job.cluster, {});
}

}  // namespace ebb
