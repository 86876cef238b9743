// From stepped master weights to model parameters: the cast, and the quantisation of gathered FP8 and FP4 weights
// (quantization.hpp), in two forms:
//   whole   after the step of everything, one call for each chained optimizer: resident, full-reload, windowed
//   again   chunked's second pass. When all chunks are stepped, the masters come in again, are quantised, and go out
//           again, in chunks of its own (quantize_calls.hpp).
// A call is: largest values of what is owned, into a buffer that starts at 0; their maximum over all ranks; scales and
// rows from it. So a chunk's border never changes a scale.
// Source: Megatron-LM main d98e8a64dd, distrib_optimizer.py, _copy_main_params_to_model_params; pull request 6544,
// _copy_fp8_params_after_chunked_optimizer_step.
#include <fmt/format.h>

#include <algorithm>

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
  Quantizer(PlanBuilder& plan, const RankModel& rank, Phase phase)
      : plan_(plan),
        rank_(rank),
        phase_(phase),
        explicit_(quantizes_explicitly(rank.job->precision)),
        bytes_(quantize_bytes(rank.job->precision)) {}
  /// The masters are on the device and stay there.
  void whole(QuantizeCall call, std::span<const std::int64_t> cuts);
  /// They come in and go out again.
  void again(const QuantizeCall& call);

 private:
  struct Incoming {
    BufferId masters;  // of one run
    OpId room;
  };
  OpId quantize(const QuantizeCall& call, BufferId largest, OpId ready);
  OpId kernel(Work work, const Part& run, std::uint8_t states, std::int64_t bytes, BufferId largest, OpId after);
  Incoming incoming(const QuantizeCall& call, std::size_t run);
  OpId bring_in(const QuantizeCall& call, BufferId largest, OpId room);

  PlanBuilder& plan_;
  const RankModel& rank_;
  Phase phase_;
  bool explicit_;
  QuantizeBytes bytes_;
};

OpId Quantizer::kernel(Work work, const Part& run, std::uint8_t states, std::int64_t bytes, BufferId largest,
                       OpId after) {
  return plan_.add({.kind = OpKind::kernel,
                    .phase = phase_,
                    .work = explicit_ ? work : Work::cast,
                    .states = states,
                    .stream = kComputeStream,
                    .chunk = run.chunk,
                    .calls = run.tensors(),
                    .buffer = largest,
                    .bytes = bytes_of(run.range.numel(), bytes),
                    .range = run.range},
                   {after});
}

/// `ready`: everything that was issued so far and must have ended. The last op.
OpId Quantizer::quantize(const QuantizeCall& call, BufferId largest, OpId ready) {
  const bool delayed = rank_.job->precision.fp8 == Fp8Recipe::delayed;
  for (const Part& run : call.runs) ready = kernel(Work::find_largest, run, kMaster, bytes_.measure, largest, ready);
  if (!delayed) ready = reduce_largest(plan_, rank_, phase_, call, largest, ready);
  for (const Part& run : call.runs) ready = kernel(Work::quantize, run, kMaster | kParams, bytes_.cast, largest, ready);
  // Scales are everybody's, even of parameters that this rank owns nothing of.
  if (explicit_ && call.runs.empty()) ready = kernel(Work::quantize, {{}, {}, call.chunk}, 0, 0, largest, ready);
  return delayed ? reduce_largest(plan_, rank_, phase_, call, largest, ready) : ready;
}

/// A run whose masters lie in two buffers is two.
std::vector<Part> cut_runs(const std::vector<Part>& runs, std::span<const std::int64_t> cuts) {
  std::vector<Part> parts;
  for (Part run : runs) {
    std::int64_t at = run.range.begin;
    std::size_t first = 0;
    for (std::size_t i = 0; i < run.shards.size(); ++i) {
      if (i > first && std::find(cuts.begin(), cuts.end(), at) != cuts.end()) {
        parts.push_back({run.shards.subspan(first, i - first), {run.range.begin, at}, run.chunk});
        run.range.begin = at;
        first = i;
      }
      at += run.shards[i].numel.value;
    }
    parts.push_back({run.shards.subspan(first), {run.range.begin, at}, run.chunk});
  }
  return parts;
}

void Quantizer::whole(QuantizeCall call, std::span<const std::int64_t> cuts) {
  const LargestBuffer largest = allocate_largest(plan_, rank_, phase_, call);
  OpId ready = largest.ready;
  Bytes copied{0};
  for (const Part& run : call.runs) copied += allocated_tensors(run.shards, 2);
  call.runs = cut_runs(call.runs, cuts);
  BufferId copies;
  if (copied.value > 0) {
    copies = plan_.buffer(call.expert ? "expert bf16 masters" : "bf16 masters", Memory::device, copied, false, phase_);
    ready = plan_.allocate(copies, phase_);
  }
  ready = quantize(call, largest.buffer, ready);
  if (copies.valid()) plan_.release(copies, phase_);
  plan_.release(largest.buffer, phase_, {ready});
}

/// A buffer for the masters of one run, with their copies in the model's type.
Quantizer::Incoming Quantizer::incoming(const QuantizeCall& call, std::size_t run) {
  const Part& part = call.runs[run];
  const Bytes bytes = allocated_state(rank_.job->precision, part.shards, kMaster) + allocated_tensors(part.shards, 2);
  Incoming in;
  const std::string name = run == 0 ? "fp8 chunk" : fmt::format("fp8 chunk, run {} of", run);
  in.masters = plan_.buffer(name, call.chunk, bytes, phase_);
  plan_.state(in.masters, kMaster, part.range);
  in.room = plan_.allocate(in.masters, phase_, call.chunk, 2 * part.tensors());
  return in;
}

/// The last op on the largest values.
OpId Quantizer::bring_in(const QuantizeCall& call, BufferId largest, OpId room) {
  std::vector<Incoming> runs;
  for (std::size_t r = 0; r < call.runs.size(); ++r) runs.push_back(incoming(call, r));
  OpId ready = room;
  for (std::size_t r = 0; r < runs.size(); ++r)
    ready =
        copy_state(plan_, rank_, OpKind::copy_h2d, phase_, kMaster, call.runs[r], runs[r].masters, {runs.back().room});
  ready = quantize(call, largest, ready);
  if (runs.empty()) return ready;
  // A step moves them out again, as Megatron-LM does; elsewhere the host's copies are what they were.
  OpId out = ready;
  for (std::size_t r = 0; r < runs.size() && phase_ == Phase::step; ++r)
    out = copy_state(plan_, rank_, OpKind::copy_d2h, phase_, kMaster, call.runs[r], runs[r].masters, {ready});
  plan_.add({.kind = OpKind::host_wait, .phase = phase_, .stream = kHost, .chunk = call.chunk}, {out});
  for (const Incoming& run : runs) plan_.release(run.masters, phase_, {}, OpId::none(), call.chunk);
  return ready;
}

void Quantizer::again(const QuantizeCall& call) {
  if (phase_ == Phase::step) host_call(plan_, rank_, call.chunk, kPassesPerChunk);
  const LargestBuffer largest = allocate_largest(plan_, rank_, phase_, call);
  const OpId ready = bring_in(call, largest.buffer, largest.ready);
  plan_.release(largest.buffer, phase_, {ready}, OpId::none(), call.chunk);
}

}  // namespace

OpId reduce_largest(PlanBuilder& plan, const RankModel& rank, Phase phase, const QuantizeCall& call, BufferId largest,
                    OpId after) {
  const Group group = sharding_group(*rank.job, call.expert);
  if (group.members <= 1) return after;
  Bytes bytes{0};
  for (const std::uint32_t index : call.parameters)
    bytes += largest_bytes(rank.job->precision, rank.stage->parameters[index]);
  return plan.add({.kind = OpKind::collective,
                   .phase = phase,
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

LargestBuffer allocate_largest(PlanBuilder& plan, const RankModel& rank, Phase phase, const QuantizeCall& call) {
  Bytes bytes{0};
  for (const Bytes tensor : quantize_temporaries(rank.job->precision, *rank.stage, call.parameters))
    bytes += memory::allocated_bytes(tensor);
  LargestBuffer largest;
  if (call.chunk != kNoChunk)
    largest.buffer = plan.buffer("fp8 largest", call.chunk, bytes, phase);
  else
    largest.buffer =
        plan.buffer(call.expert ? "expert fp8 largest" : "fp8 largest", Memory::device, bytes, false, phase);
  largest.ready = plan.allocate(largest.buffer, phase, call.chunk);
  if (!quantizes_explicitly(rank.job->precision)) return largest;
  plan.largest(largest.buffer, call.parameters);
  largest.ready = plan.add({.kind = OpKind::kernel,
                            .phase = phase,
                            .work = Work::zero_state,
                            .stream = kComputeStream,
                            .chunk = call.chunk,
                            .buffer = largest.buffer,
                            .bytes = bytes});
  return largest;
}

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

void quantize_params(PlanBuilder& plan, const RankModel& rank, Phase phase, std::span<const std::int64_t> cuts) {
  Quantizer quantizer(plan, rank, phase);
  for (QuantizeCall& call : quantize_calls(rank, std::nullopt, 0)) quantizer.whole(std::move(call), cuts);
}

void quantize_chunks(PlanBuilder& plan, const RankModel& rank, Numel chunk_numel, std::uint32_t first_chunk,
                     Phase phase) {
  Quantizer quantizer(plan, rank, phase);
  for (const QuantizeCall& call : quantize_calls(rank, chunk_numel, first_chunk)) quantizer.again(call);
}

}  // namespace ebb
