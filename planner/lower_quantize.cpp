// From stepped master weights to model parameters: the cast, and the quantisation of gathered FP8 and FP4 weights
// (quantization.hpp), in two forms:
//   whole   after the step of everything, one call for each chained optimizer: resident, full-reload, windowed
//   again   chunked's second pass. When all chunks are stepped, the masters come in again, are quantised, and go out
//           again, in chunks of its own (quantize_calls.hpp).
// Source: Megatron-LM main d98e8a64dd, distrib_optimizer.py, _copy_main_params_to_model_params; pull request 6544,
// _copy_fp8_params_after_chunked_optimizer_step.
#include "models/memory/torch_allocator.hpp"
#include "planner/lowerings.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/overlap_pieces.hpp"
#include "planner/quantization.hpp"
#include "planner/quantize_calls.hpp"

namespace ebb {

namespace {

/// Walks over the rank's parameters a chunk costs: reload and offload of masters.
constexpr std::uint32_t kPassesPerChunk = 2;

class Quantizer {
 public:
  Quantizer(PlanBuilder& plan, const RankModel& rank)
      : plan_(plan), rank_(rank), bytes_(quantize_bytes(rank.job->precision)) {}
  /// The masters are on the device and stay there.
  void whole(const QuantizeCall& call);
  /// They come in and go out again.
  void again(const QuantizeCall& call);

 private:
  BufferId temporaries(const QuantizeCall& call);
  OpId quantize(const QuantizeCall& call, BufferId largest, OpId ready);
  OpId kernel(const Part& run, std::uint8_t states, std::int64_t bytes, BufferId largest, OpId after);
  OpId reduce(const QuantizeCall& call, BufferId largest, OpId after);

  PlanBuilder& plan_;
  const RankModel& rank_;
  QuantizeBytes bytes_;
};

OpId Quantizer::kernel(const Part& run, std::uint8_t states, std::int64_t bytes, BufferId largest, OpId after) {
  return plan_.add({.kind = OpKind::kernel,
                    .phase = Phase::step,
                    .work = Work::cast,
                    .states = states,
                    .stream = kComputeStream,
                    .chunk = run.chunk,
                    .calls = run.tensors(),
                    .buffer = largest,
                    .bytes = bytes_of(run.range.numel(), bytes),
                    .range = run.range},
                   {after});
}

OpId Quantizer::reduce(const QuantizeCall& call, BufferId largest, OpId after) {
  const Group group = sharding_group(*rank_.job, call.expert);
  if (group.members <= 1) return after;
  Bytes bytes{0};
  for (const std::uint32_t index : call.parameters)
    bytes += largest_bytes(rank_.job->precision, rank_.stage->parameters[index]);
  return plan_.add({.kind = OpKind::collective,
                    .phase = Phase::step,
                    .work = Work::all_reduce,
                    .stream = kComm,
                    .chunk = call.chunk,
                    .members = group.members,
                    .stride = group.stride,
                    .domains = group.domains,
                    .buffer = largest,
                    .bytes = bytes},
                   {after});
}

/// `ready`: everything that was issued so far and must have ended. The last op.
OpId Quantizer::quantize(const QuantizeCall& call, BufferId largest, OpId ready) {
  const bool delayed = rank_.job->precision.fp8 == Fp8Recipe::delayed;
  for (const Part& run : call.runs) ready = kernel(run, kMaster, bytes_.measure, largest, ready);
  if (!delayed) ready = reduce(call, largest, ready);
  for (const Part& run : call.runs) ready = kernel(run, kMaster | kParams, bytes_.cast, largest, ready);
  return delayed ? reduce(call, largest, ready) : ready;
}

BufferId Quantizer::temporaries(const QuantizeCall& call) {
  Bytes bytes{0};
  for (const Bytes tensor : quantize_temporaries(rank_.job->precision, *rank_.stage, call.parameters))
    bytes += memory::allocated_bytes(tensor);
  if (call.chunk != kNoChunk) return plan_.buffer("fp8 largest", call.chunk, bytes, Phase::step);
  return plan_.buffer(call.expert ? "expert fp8 largest" : "fp8 largest", Memory::device, bytes, false, Phase::step);
}

void Quantizer::whole(const QuantizeCall& call) {
  const BufferId largest = temporaries(call);
  OpId ready = plan_.allocate(largest, Phase::step);
  Bytes copied{0};
  for (const Part& run : call.runs) copied += allocated_tensors(run.shards, 2);
  BufferId copies;
  if (copied.value > 0) {
    copies =
        plan_.buffer(call.expert ? "expert bf16 masters" : "bf16 masters", Memory::device, copied, false, Phase::step);
    ready = plan_.allocate(copies, Phase::step);
  }
  ready = quantize(call, largest, ready);
  if (copies.valid()) plan_.release(copies, Phase::step);
  plan_.release(largest, Phase::step, {ready});
}

void Quantizer::again(const QuantizeCall& call) {
  host_call(plan_, rank_, call.chunk, kPassesPerChunk);
  Bytes masters{0};
  for (const Part& run : call.runs)
    masters += allocated_state(rank_.job->precision, run.shards, kMaster) + allocated_tensors(run.shards, 2);
  const BufferId buffer = plan_.buffer("fp8 chunk", call.chunk, masters, Phase::step);
  plan_.state(buffer, kMaster, {});
  const BufferId largest = temporaries(call);
  OpId ready = plan_.allocate(largest, Phase::step, call.chunk);
  if (!call.runs.empty()) {
    const OpId room = plan_.allocate(buffer, Phase::step, call.chunk, 2 * call.tensors());
    for (const Part& run : call.runs)
      ready = copy_state(plan_, rank_, OpKind::copy_h2d, Phase::step, kMaster, run, buffer, {room});
  }
  ready = quantize(call, largest, ready);
  if (!call.runs.empty()) {
    OpId out;
    for (const Part& run : call.runs)
      out = copy_state(plan_, rank_, OpKind::copy_d2h, Phase::step, kMaster, run, buffer, {ready});
    plan_.add({.kind = OpKind::host_wait, .phase = Phase::step, .stream = kHost, .chunk = call.chunk}, {out});
    plan_.release(buffer, Phase::step, {}, OpId::none(), call.chunk);
  }
  plan_.release(largest, Phase::step, {ready}, OpId::none(), call.chunk);
}

}  // namespace

OpId cast_to_params(PlanBuilder& plan, const RankModel& rank, const Precision& precision, const Part& part,
                    BufferId buffer, OpId stepped) {
  if (adam_writes_params(precision)) return stepped;
  const bool later = requantizes(precision);
  const auto quantized = [&](const Shard& shard) { return later && rank.stage->buffers[shard.buffer].quantized; };
  std::int64_t begin = part.range.begin;
  for (std::size_t first = 0; first < part.shards.size();) {
    const bool skip = quantized(part.shards[first]);
    std::size_t end = first;
    std::int64_t at = begin;
    while (end < part.shards.size() && quantized(part.shards[end]) == skip) at += part.shards[end++].numel.value;
    if (!skip)
      stepped = plan.add({.kind = OpKind::kernel,
                          .phase = Phase::step,
                          .work = Work::cast,
                          .states = kMaster | kParams,
                          .stream = kComputeStream,
                          .chunk = part.chunk,
                          .calls = static_cast<std::uint32_t>(end - first),
                          .buffer = buffer,
                          .bytes = bytes_of(Numel{at - begin}, cast_bytes_per_element(precision)),
                          .range = {begin, at}});
    first = end;
    begin = at;
  }
  return stepped;
}

void quantize_params(PlanBuilder& plan, const RankModel& rank) {
  Quantizer quantizer(plan, rank);
  for (const QuantizeCall& call : quantize_calls(rank, std::nullopt, 0)) quantizer.whole(call);
}

void quantize_chunks(PlanBuilder& plan, const RankModel& rank, Numel chunk_numel, std::uint32_t first_chunk) {
  Quantizer quantizer(plan, rank);
  for (const QuantizeCall& call : quantize_calls(rank, chunk_numel, first_chunk)) quantizer.again(call);
}

}  // namespace ebb
