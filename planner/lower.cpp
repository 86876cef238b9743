// Lowering's entry, and the ops its policies share (lowerings.hpp).
#include "planner/lower.hpp"

#include <algorithm>
#include <bit>

#include "models/errors.hpp"
#include "planner/device_state.hpp"
#include "planner/layer_wise_layout.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"

namespace ebb {

namespace {

/// A generous guess of the plan's ops, so that its vectors grow once.
std::size_t expected_ops(const RankModel& rank, const Candidate& candidate) {
  constexpr std::size_t frame = 64;
  switch (candidate.policy) {
    case Policy::chunked:
      return frame + 11 * std::min(rank.shards.size(),
                                   static_cast<std::size_t>(2 * rank.owned.value /
                                                            std::max<std::int64_t>(candidate.chunk_numel.value, 1)) +
                                       8);
    case Policy::windowed:
      return frame + 5 * rank.shards.size();
    case Policy::pipelined:
    case Policy::tidal:
      return frame + 3 * static_cast<std::size_t>(ceil_div(rank.owned.value, candidate.chunk_numel.value));
    default:
      return frame;
  }
}

void describe(const RankModel& rank, const Candidate& candidate, LifePart part, Plan& plan) {
  plan.job = rank.job->name;
  plan.candidate = candidate;
  plan.rank = rank.rank;
  plan.part = part;
  plan.precision = precision_of(*rank.job, candidate.policy);
  plan.buckets = rank.padded.buckets;
  plan.parameters.clear();
  plan.shards.resize(rank.shards.size());
  for (std::size_t i = 0; i < rank.shards.size(); ++i) {
    const Shard& shard = rank.shards[i];
    plan.shards[i].name = rank.stage->parameters[shard.parameter].name;
    plan.shards[i].numel = shard.numel;
    plan.shards[i].at = rank.padded.place(*rank.stage, shard.buffer, shard.bucket, shard.start);
    plan.shards[i].parameter = 0;
    plan.shards[i].offset = shard.offset;
  }
}

void lower_training(PlanBuilder& builder, const RankModel& rank, const Candidate& candidate) {
  switch (candidate.policy) {
    case Policy::resident:
      return lower_resident(builder, rank);
    case Policy::full_reload:
      return lower_full_reload(builder, rank);
    case Policy::chunked:
      return lower_chunked(builder, rank, candidate.chunk_numel);
    case Policy::windowed:
      return lower_windowed(builder, rank, candidate.chunk_size_mb, candidate.fraction);
    case Policy::cpu_adam:
      return lower_cpu_adam(builder, rank, candidate.fraction);
    case Policy::pipelined:
      return lower_pipelined(builder, rank, candidate.chunk_numel, candidate.slots);
    case Policy::tidal:
      return lower_tidal(builder, rank, candidate);
  }
}

void lower_into(const RankModel& rank, const Candidate& candidate, LifePart part, Plan& plan) {
  EBB_ASSERT(rank.job != nullptr && rank.stage != nullptr);
  describe(rank, candidate, part, plan);
  PlanBuilder builder(plan, expected_ops(rank, candidate));
  const HostBytes host = host_bytes(rank, candidate);
  if (host.pinned.value > 0) builder.buffer("host state", Memory::pinned, host.pinned, true);
  if (host.pageable.value > 0) builder.buffer("host moments", Memory::pageable, host.pageable, true);
  switch (part) {
    case LifePart::step:
    case LifePart::first_step:
    case LifePart::first_skip:
    case LifePart::skip:
      return lower_training(builder, rank, candidate);
    case LifePart::init:
      return lower_init(builder, rank, candidate);
    case LifePart::load:
    case LifePart::load_params:
    case LifePart::reload:
      return lower_load(builder, rank, candidate);
    case LifePart::save:
      return lower_save(builder, rank, candidate);
  }
}

}  // namespace

void lower_into(const RankModel& rank, const Candidate& candidate, Plan& plan) {
  lower_into(rank, candidate, LifePart::step, plan);
}

Plan lower(const RankModel& rank, const Candidate& candidate) { return lower_part(rank, candidate, LifePart::step); }

Plan lower_part(const RankModel& rank, const Candidate& candidate, LifePart part) {
  Plan plan;
  lower_into(rank, candidate, part, plan);
  return plan;
}

Part whole(const RankModel& rank) { return {rank.shards, {0, rank.owned.value}}; }

std::size_t shards_on_host(const RankModel& rank, double fraction) {
  const double wanted = fraction * static_cast<double>(rank.owned.value);
  std::int64_t taken = 0;
  std::size_t count = 0;
  while (count < rank.shards.size() && static_cast<double>(taken) < wanted) taken += rank.shards[count++].numel.value;
  return count;
}

HybridParts hybrid_parts(const RankModel& rank, double fraction) {
  const std::size_t count = shards_on_host(rank, fraction);
  const std::span<const Shard> shards(rank.shards);
  const std::int64_t cut = owned(shards.first(count)).value;
  return {.moves = {shards.first(count), {0, cut}}, .stays = {shards.subspan(count), {cut, rank.owned.value}}};
}

void host_call(PlanBuilder& plan, const RankModel& rank, std::uint32_t chunk, std::uint32_t passes) {
  const Calls& calls = rank.job->cluster.calls;
  plan.add({.kind = OpKind::host_work,
            .phase = Phase::step,
            .work = Work::chunk_overhead,
            .stream = kHost,
            .chunk = chunk,
            .duration = to_ticks(calls.chunk.value)});
  if (passes == 0) return;
  const std::uint32_t scans = passes * static_cast<std::uint32_t>(rank.shards.size());
  plan.add({.kind = OpKind::host_work,
            .phase = Phase::step,
            .work = Work::tensor_scan,
            .stream = kHost,
            .chunk = chunk,
            .calls = scans,
            .duration = to_ticks({scans * calls.tensor_scan.value.value})});
}

OpId copy_state(PlanBuilder& plan, const RankModel& rank, OpKind direction, Phase phase, std::uint8_t states,
                const Part& part, BufferId buffer, std::initializer_list<OpId> deps) {
  states &= held_states(rank.job->precision);
  if (states == 0) return deps.size() > 0 ? *deps.begin() : OpId::none();
  return plan.add({.kind = direction,
                   .phase = phase,
                   .states = states,
                   .stream = direction == OpKind::copy_h2d ? kH2d : kD2h,
                   .chunk = part.chunk,
                   .calls = part.tensors() * static_cast<std::uint32_t>(std::popcount(states)),
                   .buffer = buffer,
                   .bytes = bytes_of(part.range.numel(), state_bytes_per_element(rank.job->precision, states)),
                   .range = part.range},
                  deps);
}

OpId adam(PlanBuilder& plan, const Precision& precision, AdamKernel kernel, const Part& part, BufferId buffer,
          std::initializer_list<OpId> deps) {
  const std::uint8_t params = adam_writes_params(precision) ? kParams : 0;
  return plan.add({.kind = OpKind::kernel,
                   .phase = Phase::step,
                   .work = adam_work(kernel),
                   .states = static_cast<std::uint8_t>(held_states(precision) | kGrads | params),
                   .stream = kComputeStream,
                   .chunk = part.chunk,
                   .calls = adam_launches(kernel),
                   .buffer = buffer,
                   .bytes = step_bytes(precision, part.shards, false),
                   .range = part.range},
                  deps);
}

AdamScratch::AdamScratch(PlanBuilder& plan, Bytes bytes) : plan_(plan) {
  if (bytes.value == 0) return;
  buffer_ = plan_.buffer("Adam scratch", Memory::device, bytes, false, Phase::step);
  plan_.allocate(buffer_, Phase::step);
}

void AdamScratch::release() {
  if (buffer_.valid()) plan_.release(buffer_, Phase::step);
}

namespace {

/// Muon's matrix products, at the rate of the model's own.
Seconds orthogonalization(const RankModel& rank, const Part& part) {
  Flops flops{0};
  for (const Shard& shard : part.shards) {
    const Parameter& parameter = rank.stage->parameters[shard.parameter];
    if (is_orthogonalized(rank.job->optimizer, parameter))
      flops += newton_schulz_flops(parameter.rows, parameter.columns);
  }
  const Gpu& gpu = rank.job->cluster.gpu;
  return {flops.value / (gpu.matrix_bf16.value.value * gpu.compute_efficiency.value)};
}

}  // namespace

void step_on_device(PlanBuilder& plan, const RankModel& rank, const Precision& precision, AdamKernel kernel,
                    const Part& part, const DeviceState& state) {
  host_call(plan, rank, kNoChunk, 1);
  come_into_being(plan, precision, part, state);
  AdamScratch scratch(plan, adam_temporaries(precision, kernel, part.shards));
  if (const Seconds products = orthogonalization(rank, part); products.value > 0)
    plan.add({.kind = OpKind::compute,
              .phase = Phase::step,
              .stream = kComputeStream,
              .buffer = state.moments,
              .duration = to_ticks(products)});
  const OpId stepped = adam(plan, precision, kernel, part, state.moments, {});
  cast_to_params(plan, rank, precision, part, state.masters, stepped);
  scratch.release();
}

}  // namespace ebb
