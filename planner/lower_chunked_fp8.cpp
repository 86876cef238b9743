// chunked's second pass under FP8 parameter gather. When all chunks are stepped, the masters of FP8 parameters come in
// again, are quantised, and go out again. Its chunks hold parameters up to N elements of the whole model, owned or not,
// so that every rank of the sharding group has the same chunks: each needs the largest value of its parameters over all
// ranks, an all-reduce. Here a chunk also ends with its buffer.
// Source: Megatron-LM pull request 6544, _copy_fp8_params_after_chunked_optimizer_step; TransformerEngine,
// quantize_master_weights (bf16 copies, largest values, all-reduce, scales, cast).
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/overlap_pieces.hpp"

namespace ebb {

namespace {

/// Walks over the rank's parameters a chunk costs: reload and offload of masters.
constexpr std::uint32_t kPassesPerChunk = 2;
/// Per element: the master is read and written as bf16, which is read for the largest value; then read and cast.
constexpr std::int64_t kMeasureBytes = 4 + 2 + 2;
constexpr std::int64_t kCastBytes = 2 + 1;

class QuantizePass {
 public:
  QuantizePass(PlanBuilder& plan, const RankModel& rank, Numel limit, std::uint32_t first_chunk)
      : plan_(plan), rank_(rank), limit_(limit), chunk_(first_chunk) {}
  void buffer(std::uint32_t index);

 private:
  void chunk(const BufferLayout& layout, const Part& part, std::uint32_t parameters);
  OpId kernel(const Part& part, std::uint8_t states, std::int64_t bytes, BufferId largest, OpId after);

  PlanBuilder& plan_;
  const RankModel& rank_;
  Numel limit_;
  std::uint32_t chunk_;
};

/// Shards of one buffer follow each other in optimizer order, in the order of the buffer's parameters: FP8 parameters
/// are matrices, and so of one parameter group.
void QuantizePass::buffer(std::uint32_t index) {
  const BufferLayout& layout = rank_.stage->buffers[index];
  const std::span<const Shard> shards(rank_.shards);
  std::size_t first = 0;
  std::int64_t begin = 0;
  while (first < shards.size() && shards[first].buffer != index) begin += shards[first++].numel.value;
  for (std::size_t range = 0; range < layout.ranges.size();) {
    std::size_t end = first;
    std::int64_t at = begin;
    std::uint32_t parameters = 0;
    for (Numel sum{0}; range < layout.ranges.size(); ++range, ++parameters) {
      const ParameterRange& place = layout.ranges[range];
      const Numel numel = place.end - place.start;
      if (parameters > 0 && sum + numel > limit_) break;
      sum += numel;
      const bool owns = end < shards.size() && shards[end].buffer == index && shards[end].parameter == place.parameter;
      if (owns) at += shards[end++].numel.value;
    }
    chunk(layout, {shards.subspan(first, end - first), {begin, at}, chunk_++}, parameters);
    first = end;
    begin = at;
  }
}

OpId QuantizePass::kernel(const Part& part, std::uint8_t states, std::int64_t bytes, BufferId largest, OpId after) {
  return plan_.add({.kind = OpKind::kernel,
                    .phase = Phase::step,
                    .work = Work::cast,
                    .states = states,
                    .stream = kComputeStream,
                    .chunk = part.chunk,
                    .calls = part.tensors(),
                    .buffer = largest,
                    .bytes = bytes_of(part.range.numel(), bytes),
                    .range = part.range},
                   {after});
}

void QuantizePass::chunk(const BufferLayout& layout, const Part& part, std::uint32_t parameters) {
  host_call(plan_, rank_, part.chunk, kPassesPerChunk);
  const Bytes masters = allocated_state(rank_.job->precision, part.shards, kMaster);
  const BufferId buffer =
      plan_.buffer("fp8 chunk", part.chunk, masters + allocated_tensors(part.shards, 2), Phase::step);
  const BufferId largest =
      plan_.buffer("fp8 largest", part.chunk, Bytes{round_up(std::int64_t{4} * parameters, 512)}, Phase::step);
  const bool owns = part.tensors() > 0;
  OpId ready = plan_.allocate(largest, Phase::step, part.chunk);
  if (owns) {
    const OpId room = plan_.allocate(buffer, Phase::step, part.chunk);
    ready = copy_state(plan_, rank_, OpKind::copy_h2d, Phase::step, kMaster, part, buffer, {room});
    ready = kernel(part, kMaster, kMeasureBytes, largest, ready);
  }
  const Group group = sharding_group(*rank_.job, layout.expert);
  if (group.members > 1) {
    ready = plan_.add({.kind = OpKind::collective,
                       .phase = Phase::step,
                       .work = Work::all_reduce,
                       .stream = kComm,
                       .chunk = part.chunk,
                       .members = group.members,
                       .stride = group.stride,
                       .domains = group.domains,
                       .buffer = largest,
                       .bytes = Bytes{std::int64_t{4} * parameters}},
                      {ready});
  }
  if (owns) {
    ready = kernel(part, kMaster | kParams, kCastBytes, largest, ready);
    const OpId out = copy_state(plan_, rank_, OpKind::copy_d2h, Phase::step, kMaster, part, buffer, {ready});
    plan_.add({.kind = OpKind::host_wait, .phase = Phase::step, .stream = kHost, .chunk = part.chunk}, {out});
    plan_.release(buffer, Phase::step, {}, OpId::none(), part.chunk);
  }
  plan_.release(largest, Phase::step, {ready}, OpId::none(), part.chunk);
}

}  // namespace

void quantize_chunks(PlanBuilder& plan, const RankModel& rank, Numel chunk_numel, std::uint32_t first_chunk) {
  QuantizePass pass(plan, rank, chunk_numel, first_chunk);
  for (std::uint32_t b = 0; b < rank.stage->buffers.size(); ++b) {
    if (rank.stage->buffers[b].quantized) pass.buffer(b);
  }
}

}  // namespace ebb
