// One rank from part to part of a life: storage that carries over by name, the step that becomes a skip, injected
// values, and what a part took of the device.
#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/access_ref.hpp"
#include "kernels/elementwise.hpp"
#include "models/live_meter.hpp"
#include "replay/reference_rank.hpp"

namespace ebb::replay {

namespace {

/// Calls visit(id) for the buffers that an action of quantised weights names. Returns false for other actions.
template <class Visit>
bool visit_quantized(const Action& action, Visit visit) {
  if (const auto* find = std::get_if<FindLargest>(&action)) {
    visit(find->masters);
    visit(find->largest);
  } else if (const auto* quantize = std::get_if<Quantize>(&action)) {
    if (quantize->masters.valid()) visit(quantize->masters);
    visit(quantize->largest);
  } else if (const auto* dequantize = std::get_if<Dequantize>(&action)) {
    visit(dequantize->to);
  } else if (const auto* stand = std::get_if<Stand>(&action)) {
    return !stand->fills();
  } else {
    return std::holds_alternative<MakeColumns>(action);
  }
  return true;
}

}  // namespace

/// The op's buffers by the plan's ids: those that it names, parameters, scales, and column-wise copies while they live.
void ReferenceRank::bind_quantized(std::uint32_t i) {
  Bound& bound = actions_[i];
  const Quantized& quantized = *program_->quantized;
  const auto name = [&](BufferId id) { bound.named.emplace_back(id.index, last_life_[id.index]); };
  if (!visit_quantized(program_->actions[i], name)) return;
  name(program_->params);
  name(quantized.scales);
  bound.columns_live = quantized.columns.valid() && lives_[quantized.columns.index];
  if (bound.columns_live) name(quantized.columns);
  for (const auto& [buffer, storage] : bound.named)
    if (std::find(bound.uses.begin(), bound.uses.end(), storage) == bound.uses.end()) bound.uses.push_back(storage);
}

void ReferenceRank::adopt(const Program& next) {
  EBB_ASSERT(in_life_);
  Contents left;
  for (std::uint32_t b = 0; b < plan().buffers.size(); ++b)
    if (storages_[last_life_[b]].alive) left[plan().buffers[b].name] = std::move(storages_[last_life_[b]].data);
  spare_.clear();
  for (Storage& storage : storages_)
    if (!storage.alive && !storage.strayed) spare_[storage.data.size()].push_back(std::move(storage.data));
  program_ = &next;
  for (const Buffer& buffer : plan().buffers) {
    if (!buffer.initial || buffer.memory != Memory::device) continue;
    const auto found = left.find(buffer.name);
    EBB_ASSERT(found != left.end());
    EBB_ASSERT(found->second.empty() || found->second.size() == static_cast<std::size_t>(buffer.bytes.value));
  }
  bind(std::move(left));
  // Buffers of checkpoints are each part's own.
  const bool stages = std::any_of(plan().buffers.begin(), plan().buffers.end(),
                                  [](const Buffer& buffer) { return buffer.role == Role::checkpoint; });
  if (stages)
    std::fill(pinned_.end() - static_cast<std::ptrdiff_t>(next.staged.value), pinned_.end(),
              std::byte{kernels::kPoison});
}

/// Buffers keep their storage by name: the skip's plan may number those that the ops so far do not name differently.
void ReferenceRank::go_on_with(const Program& skip) {
  const Program& step = *program_;
  EBB_ASSERT(skip.decision == step.decision);
  std::map<std::string, std::uint32_t> known;
  for (std::uint32_t b = 0; b < plan().buffers.size(); ++b)
    if (lived_at_decision_[b]) known[plan().buffers[b].name] = b;
  began_with_ = &step;
  program_ = &skip;
  const std::vector<std::uint32_t> before = std::exchange(first_life_, {});
  last_life_.clear();
  lived_.assign(plan().buffers.size(), false);
  lives_.assign(plan().buffers.size(), false);
  for (std::uint32_t b = 0; b < plan().buffers.size(); ++b) {
    const auto found = known.find(plan().buffers[b].name);
    lived_[b] = found != known.end();
    lives_[b] = lived_[b] && lives_at_decision_[found->second];
    first_life_.push_back(lived_[b] ? before[found->second] : open(b));
    last_life_.push_back(lived_[b] ? life_at_decision_[found->second] : first_life_.back());
  }
  bind_from(skip.decision.index + 1);
  ended_.resize(plan().ops.size());
  changes_.resize(plan().ops.size());
}

bool ReferenceRank::finite(std::uint32_t decision) {
  const Bound& bound = actions_[decision];
  EBB_ASSERT(bound.uses.size() == 1);
  std::uint32_t nonfinite = 0;
  std::memcpy(&nonfinite, storages_[bound.uses.front()].data.data() + NormWords::kNonFinite, sizeof nonfinite);
  return nonfinite == 0;
}

/// A life begins with the model: its parameters. Quantised ones come of masters; until then they, and scales, are 0.
void ReferenceRank::first_parameters() {
  std::byte* const params = data(program_->params);
  Bytes at{0};
  for (const PlanBucket& bucket : plan().buckets) {
    const Dtype type = bucket.quantized ? Dtype::fp8 : plan().precision.params;
    const kernels::Run run{.offset = 0, .index = bucket.begin.value, .numel = bucket.numel().value};
    if (bucket.quantized)
      std::memset(params + at.value, 0, static_cast<std::size_t>(run.numel));
    else
      kernels::fill_random_ref(kernel_type(type), params + at.value, std::span(&run, 1), options_.seed, 1);
    at += bytes_of(bucket.numel(), size_of(type));
  }
  if (!program_->quantized) return;
  for (const BufferId id : {program_->quantized->scales, program_->quantized->columns}) {
    if (!id.valid()) continue;
    Storage& storage = storages_[first_life_[id.index]];
    std::fill(storage.data.begin(), storage.data.end(), std::byte{0});
  }
}

/// Live bytes in the order of issue, as a host counts them (LiveMeter), of what was really taken and handed back.
PartPeak ReferenceRank::end_part() {
  Bytes live{0};
  const Plan& first = began_with_ != nullptr ? *began_with_->plan : plan();
  for (const Buffer& buffer : first.buffers)
    if (buffer.initial && buffer.memory == Memory::device) live += buffer.bytes;
  PartPeak peak{plan().part, live, initial_device_bytes(plan())};
  LiveMeter planned(peak.planned);
  for (std::uint32_t i = 0; i < plan().ops.size(); ++i) {
    const Op& op = plan().ops[i];
    live += changes_[i];
    peak.live = std::max(peak.live, live);
    planned.enter(op.phase);
    if (op.kind == OpKind::allocate) planned.change(device_bytes(op.buffer));
    if (op.kind == OpKind::release) planned.change({-device_bytes(op.buffer).value});
  }
  peak.planned = planned.peak();
  return peak;
}

/// inf or nan in the place of a gradient, on one rank.
void ReferenceRank::inject() {
  const Injection* const injection = injection_of(options_, plan().rank, place_.steps + 1);
  if (injection == nullptr) return;
  for (const PlanShard& shard : plan().shards) {
    if (shard.numel.value == 0) continue;
    const Dtype type = plan().precision.grads;
    return kernels::write_value(
        kernel_type(type),
        reinterpret_cast<char*>(data({last_life_[program_->grads.index]})) + shard.at.value * size_of(type),
        injection->value);
  }
}

/// Parameters by padded index, quantised ones as bytes; scales as bytes, by their place.
ReferenceRank::FinalDigests ReferenceRank::final_digests() {
  FinalDigests digests;
  now_ = {};
  std::byte* const params = data({last_life_[program_->params.index]});
  Bytes at{0};
  for (const PlanBucket& bucket : plan().buckets) {
    const Dtype type = bucket.quantized ? Dtype::fp8 : plan().precision.params;
    digest(type, params, kParams, bucket.begin.value, at, bucket.numel());
    at += bytes_of(bucket.numel(), size_of(type));
  }
  if (program_->quantized) {
    const std::uint32_t scales = last_life_[program_->quantized->scales.index];
    digest(Dtype::fp8, storages_[scales].data.data(), kGrads, 0, {0},
           {static_cast<std::int64_t>(storages_[scales].data.size())});
  }
  digests.parameters = now_.digest;
  for (const StatePlace& place : program_->after)
    digest(place.state == kMaster ? Dtype::fp32 : moment_type(place.state), state(place), place.state,
           place.elements.begin, {0}, place.elements.numel());
  digests.state = now_.digest;
  return digests;
}

}  // namespace ebb::replay
