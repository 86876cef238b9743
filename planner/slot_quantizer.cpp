#include "planner/slot_quantizer.hpp"

#include <algorithm>
#include <utility>

#include "models/errors.hpp"
#include "models/memory/torch_allocator.hpp"
#include "planner/quantization.hpp"

namespace ebb {

namespace {

// HBM bytes an element: Ebb's own kernels read the fp32 master, and write a byte, MXFP8 two.
constexpr std::int64_t kMeasured = 4;
constexpr std::int64_t quantized_bytes(Fp8Recipe recipe) { return recipe == Fp8Recipe::mxfp8 ? 6 : 5; }

}  // namespace

SlotQuantizer::SlotQuantizer(PlanBuilder& plan, const RankModel& rank, Numel slot_numel, int slots, Phase phase)
    : plan_(plan), rank_(rank), phase_(phase), slot_numel_(slot_numel), slots_(static_cast<std::size_t>(slots)) {
  if (!quantizes_explicitly(rank.job->precision)) return;
  chunks_ = slot_chunks(rank, rank.job->precision, slot_numel);
  for (QuantizeCall& call : quantize_calls(rank, std::nullopt, 0)) {
    const LargestBuffer largest = allocate_largest(plan, rank, phase, call);
    calls_.push_back({std::move(call), largest});
  }
}

SlotQuantizer::Call& SlotQuantizer::call_of(const OwnedRun& chunk) {
  const auto found =
      std::find_if(calls_.begin(), calls_.end(), [&](const Call& call) { return call.call.expert == chunk.expert; });
  EBB_ASSERT(found != calls_.end());
  return *found;
}

OpId SlotQuantizer::kernel(Work work, std::uint32_t k, std::int64_t bytes, std::initializer_list<OpId> deps) {
  return plan_.add({.kind = OpKind::kernel,
                    .phase = phase_,
                    .work = work,
                    .states = static_cast<std::uint8_t>(work == Work::quantize ? kMaster | kParams : kMaster),
                    .stream = kComputeStream,
                    .chunk = k,
                    .buffer = call_of(chunks_[k]).largest.buffer,
                    .bytes = bytes_of(chunks_[k].range.numel(), bytes),
                    .range = chunks_[k].range},
                   deps);
}

OpId SlotQuantizer::measure(std::uint32_t k, OpId ready) {
  if (calls_.empty() || !chunks_[k].quantized) return ready;
  return kernel(Work::find_largest, k, kMeasured, {ready});
}

std::vector<SlotQuantizer::Slot> SlotQuantizer::make_slots(const char* name) {
  const auto quantized = std::count_if(chunks_.begin(), chunks_.end(), [](const OwnedRun& c) { return c.quantized; });
  std::vector<Slot> ring(std::min(slots_, static_cast<std::size_t>(quantized)));
  const Bytes bytes = memory::allocated_bytes(bytes_of(slot_numel_, rank_.job->precision.master_bytes()));
  for (std::size_t s = 0; s < ring.size(); ++s) {
    ring[s].buffer = plan_.buffer(name, s, bytes, phase_);
    plan_.state(ring[s].buffer, kMaster, {}, true);
    ring[s].free = plan_.allocate(ring[s].buffer, phase_);
  }
  return ring;
}

OpId SlotQuantizer::copy_in(std::uint32_t k, const Slot& slot) {
  const ElementRange range = chunks_[k].range;
  return plan_.add({.kind = OpKind::copy_h2d,
                    .phase = phase_,
                    .states = kMaster,
                    .stream = kH2d,
                    .chunk = k,
                    .buffer = slot.buffer,
                    .bytes = bytes_of(range.numel(), rank_.job->precision.master_bytes()),
                    .range = range},
                   {slot.free});
}

/// visit(k, op that brought the masters in) returns the op after which the slot is free.
template <class Visit>
void SlotQuantizer::for_each_in_slot(const char* name, Visit visit) {
  std::vector<Slot> ring = make_slots(name);
  std::size_t next = 0;
  for (std::uint32_t k = 0; k < chunks_.size(); ++k) {
    if (!chunks_[k].quantized) continue;
    Slot& slot = ring[next++ % ring.size()];
    slot.free = visit(k, copy_in(k, slot));
  }
  for (const Slot& slot : ring) plan_.release(slot.buffer, phase_, {slot.free});
}

void SlotQuantizer::measure_all() {
  for_each_in_slot("measured slot", [&](std::uint32_t k, OpId in) { return measure(k, in); });
}

void SlotQuantizer::quantize() {
  if (calls_.empty()) return;
  for (Call& call : calls_)
    call.largest.ready =
        reduce_largest(plan_, rank_, phase_, call.call, call.largest.buffer, plan_.last_on(kComputeStream));
  const std::int64_t bytes = quantized_bytes(rank_.job->precision.fp8);
  for_each_in_slot("quantised slot", [&](std::uint32_t k, OpId in) {
    OpId& ready = call_of(chunks_[k]).largest.ready;
    const OpId reduced = std::exchange(ready, OpId::none());
    return kernel(Work::quantize, k, bytes, {in, reduced});
  });
  for (const Call& call : calls_) {
    const bool owns = std::any_of(chunks_.begin(), chunks_.end(), [&](const OwnedRun& chunk) {
      return chunk.quantized && chunk.expert == call.call.expert;
    });
    if (!owns)  // the scales alone
      plan_.add({.kind = OpKind::kernel,
                 .phase = phase_,
                 .work = Work::quantize,
                 .stream = kComputeStream,
                 .buffer = call.largest.buffer},
                {call.largest.ready});
    plan_.release(call.largest.buffer, phase_);
  }
}

}  // namespace ebb
