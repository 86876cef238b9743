// chunked: `--offload-optimizer-states-chunk-numel N`. Nothing is resident between steps; the step walks the chunks
// one after another: in, Adam, cast, out, the host waits, free. Gathered FP8 and FP4 weights are quantised in a
// second pass (lower_quantize.cpp).
// Source: Megatron-LM pull request 6544, distrib_optimizer.py, _optimizer_step_with_chunked_state_reload.
#include <bit>

#include "planner/chunking.hpp"
#include "planner/device_state.hpp"
#include "planner/life_parts.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/step_frame.hpp"

namespace ebb {

namespace {

/// Walks over the rank's parameters a chunk costs: reload of masters, reload of moments, cast, offload.
constexpr std::uint32_t kPassesPerChunk = 4;

/// State of a chunk into its buffer: from the host, or made where it does not exist yet. The last op.
OpId fill_chunk(PlanBuilder& plan, const RankModel& rank, const Part& part, BufferId buffer, OpId room) {
  const Precision& precision = rank.job->precision;
  OpId in = room;
  if (!is_first_step(plan.part()) || masters_exist(plan.part(), precision)) {
    in = copy_state(plan, rank, OpKind::copy_h2d, Phase::step, kMaster, part, buffer, {room});
  } else if (precision.master_bytes() > 0) {
    make_masters(plan, precision, Phase::step, part.chunk, part.range, part.tensors(), precision.master_bytes(), buffer,
                 {room});
  }
  if (moments_exist(plan.part()))
    return copy_state(plan, rank, OpKind::copy_h2d, Phase::step, kMoments, part, buffer, {room});
  zero_moments(plan, precision, Phase::step, part.chunk, part.range, 2 * part.tensors(), buffer, {room});
  return in;
}

void chunk_step(PlanBuilder& plan, const RankModel& rank, AdamKernel kernel, const Part& part) {
  host_call(plan, rank, part.chunk, kPassesPerChunk);
  const BufferId buffer =
      plan.buffer("chunk", part.chunk, allocated_state(rank.job->precision, part.shards, kAllState), Phase::step);
  plan.state(buffer, held_states(rank.job->precision), part.range);
  const std::uint32_t states = static_cast<std::uint32_t>(std::popcount(held_states(rank.job->precision)));
  const OpId room = plan.allocate(buffer, Phase::step, part.chunk, states * part.tensors());
  const OpId in = fill_chunk(plan, rank, part, buffer, room);
  const OpId stepped = adam(plan, rank.job->precision, kernel, part, buffer, {in});
  const OpId cast = cast_to_params(plan, rank, rank.job->precision, part, buffer, stepped);
  const OpId out = copy_state(plan, rank, OpKind::copy_d2h, Phase::step, kAllState, part, buffer, {cast});
  plan.add({.kind = OpKind::host_wait, .phase = Phase::step, .stream = kHost, .chunk = part.chunk}, {out});
  plan.release(buffer, Phase::step, {}, OpId::none(), part.chunk);
}

}  // namespace

void lower_chunked(PlanBuilder& plan, const RankModel& rank, Numel chunk_numel) {
  const AdamKernel kernel = rank.job->adam_of(Policy::chunked);
  const std::vector<Chunk> chunks = chunk_by_numel(rank.shards, chunk_numel);
  StepFrame frame(plan, rank, standard_frame(rank));
  frame.zero_grads();
  frame.forward_backward();
  frame.finalize();
  if (is_skip(plan.part())) return;

  Bytes temporaries{0};
  for (const Chunk& chunk : chunks) {
    const auto shards = std::span(rank.shards).subspan(chunk.first, chunk.count);
    temporaries = std::max(temporaries, adam_temporaries(rank.job->precision, kernel, shards));
  }
  AdamScratch scratch(plan, temporaries);
  std::int64_t begin = 0;
  for (std::uint32_t k = 0; k < chunks.size(); ++k) {
    const Chunk& chunk = chunks[k];
    const auto shards = std::span(rank.shards).subspan(chunk.first, chunk.count);
    chunk_step(plan, rank, kernel, {shards, {begin, begin + chunk.numel.value}, k});
    begin += chunk.numel.value;
  }
  scratch.release();
  quantize_chunks(plan, rank, chunk_numel, static_cast<std::uint32_t>(chunks.size()));
  frame.close();
}

}  // namespace ebb
