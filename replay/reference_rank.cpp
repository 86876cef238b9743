// Lives of storage, first values, steps and final numbers. What ops compute: reference_ops.cpp.
#include "replay/reference_rank.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/access_ref.hpp"
#include "kernels/digest.hpp"
#include "kernels/elementwise.hpp"
#include "models/live_meter.hpp"

namespace ebb::replay {

namespace {

void poison(std::vector<std::byte>& data) { std::fill(data.begin(), data.end(), std::byte{kernels::kPoison}); }

/// Calls visit(id) for every buffer that an action names.
template <class Visit>
struct NamedBuffers {
  Visit visit;
  void operator()(Nothing&) {}
  void operator()(HostWork&) {}
  void operator()(HostAdam&) {}
  void operator()(Copy& copy) {
    for (Transfer& transfer : copy.transfers) visit(transfer.device.buffer);
  }
  void operator()(DeviceAdam& adam) {
    for (BufferId* id : {&adam.moments, &adam.masters, &adam.grads, &adam.params, &adam.scratch})
      if (id->valid()) visit(*id);
  }
  void operator()(Cast& cast) {
    visit(cast.from);
    visit(cast.to);
  }
  void operator()(Norm& norm) {
    visit(norm.grads);
    visit(norm.norm);
  }
  void operator()(Clip& clip) {
    visit(clip.grads);
    visit(clip.norm);
  }
  void operator()(ZeroGrads& zero) { visit(zero.grads); }
  void operator()(BucketCollective& all) {
    visit(all.buffer);
    for (BucketCollective::Part& part : all.bytes) visit(part.buffer);
  }
  void operator()(NormCollective& norm) { visit(norm.norm); }
  void operator()(Stand& stand) { visit(stand.activations); }
  void operator()(Zero& zero) { visit(zero.buffer); }
  void operator()(HostMasters&) {}
  void operator()(Store&) {}
  void operator()(Fetch&) {}
  void operator()(LargestCollective& all) { visit(all.largest); }
  // Those of quantised weights keep the plan's ids (Bound::named).
  void operator()(FindLargest&) {}
  void operator()(Quantize&) {}
  void operator()(Dequantize&) {}
  void operator()(MakeColumns&) {}
};

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
  } else {
    return std::holds_alternative<MakeColumns>(action) || std::holds_alternative<Stand>(action);
  }
  return true;
}

}  // namespace

ReferenceRank::ReferenceRank(const Program& program, const TrainingOptions& options, Begin begin)
    : program_(&program), in_life_(begin == Begin::life), options_(options), place_(first_place(options)) {
  pinned_.resize(static_cast<std::size_t>(program.pinned.value), std::byte{kernels::kPoison});
  pageable_.resize(static_cast<std::size_t>(program.pageable.value), std::byte{kernels::kPoison});
  bind();
  if (in_life_)
    first_parameters();
  else
    first_values();
}

std::uint32_t ReferenceRank::open(std::uint32_t buffer) {
  const Buffer& what = plan().buffers[buffer];
  Storage storage{{buffer}, false, false, {}};
  if (what.memory == Memory::device && what.role != Role::other)
    storage.data.resize(static_cast<std::size_t>(what.bytes.value), std::byte{kernels::kPoison});
  storages_.push_back(std::move(storage));
  return static_cast<std::uint32_t>(storages_.size() - 1);
}

/// Gives every life of a buffer its storage, and every op those of its moment in program order.
void ReferenceRank::bind() {
  storages_.clear();
  first_life_.clear();
  lived_.assign(plan().buffers.size(), false);
  for (std::uint32_t b = 0; b < plan().buffers.size(); ++b) {
    first_life_.push_back(open(b));
    lived_[b] = plan().buffers[b].initial;
  }
  last_life_ = first_life_;
  began_with_ = nullptr;
  actions_.clear();
  bind_from(0);
}

void ReferenceRank::bind_from(std::uint32_t first) {
  actions_.resize(plan().ops.size());
  last_backward_ = OpId::none().index;
  for (std::uint32_t i = 0; i < plan().ops.size(); ++i) {
    if (i >= first) bind(i);
    const auto* stand = std::get_if<Stand>(&program_->actions[i]);
    if (stand != nullptr && stand->backward) last_backward_ = i;
    if (i != program_->decision.index || began_with_ != nullptr) continue;
    life_at_decision_ = last_life_;
    lived_at_decision_ = lived_;
  }
}

void ReferenceRank::bind(std::uint32_t i) {
  const Op& op = plan().ops[i];
  Bound& bound = actions_[i];
  bound = {};
  if (op.kind == OpKind::allocate) {
    if (lived_[op.buffer.index]) last_life_[op.buffer.index] = open(op.buffer.index);
    lived_[op.buffer.index] = true;
  }
  bound.action = program_->actions[i];
  const auto use = [&](BufferId& id) {
    id.index = last_life_[id.index];
    if (std::find(bound.uses.begin(), bound.uses.end(), id.index) == bound.uses.end()) bound.uses.push_back(id.index);
  };
  std::visit(NamedBuffers<decltype(use)>{use}, bound.action);
  if (op.kind == OpKind::allocate || op.kind == OpKind::release) bound.storage = last_life_[op.buffer.index];
  if (BufferId waits = op.buffer; op.kind == OpKind::host_wait && waits.valid()) use(waits);
  if (program_->quantized) bind_quantized(i);
}

/// The op's buffers by the plan's ids: those that it names, parameters, scales, and column-wise copies while they live.
void ReferenceRank::bind_quantized(std::uint32_t i) {
  Bound& bound = actions_[i];
  const Quantized& quantized = *program_->quantized;
  const auto name = [&](BufferId id) { bound.named.emplace_back(id.index, last_life_[id.index]); };
  if (!visit_quantized(program_->actions[i], name)) return;
  name(program_->params);
  name(quantized.scales);
  if (columns_live(i)) name(quantized.columns);
  for (const auto& [buffer, storage] : bound.named)
    if (std::find(bound.uses.begin(), bound.uses.end(), storage) == bound.uses.end()) bound.uses.push_back(storage);
}

/// In program order.
bool ReferenceRank::columns_live(std::uint32_t op) const {
  const BufferId columns = program_->quantized->columns;
  if (!columns.valid()) return false;
  bool alive = plan().buffers[columns.index].initial;
  for (std::uint32_t i = 0; i < op; ++i) {
    if (plan().ops[i].buffer != columns) continue;
    if (plan().ops[i].kind == OpKind::allocate) alive = true;
    if (plan().ops[i].kind == OpKind::release) alive = false;
  }
  return alive;
}

void ReferenceRank::adopt(const Program& next) {
  EBB_ASSERT(in_life_);
  std::map<std::string, std::vector<std::byte>> left;
  for (std::uint32_t b = 0; b < plan().buffers.size(); ++b)
    if (storages_[last_life_[b]].alive) left[plan().buffers[b].name] = std::move(storages_[last_life_[b]].data);
  program_ = &next;
  bind();
  for (std::uint32_t b = 0; b < plan().buffers.size(); ++b) {
    const Buffer& buffer = plan().buffers[b];
    if (!buffer.initial || buffer.memory != Memory::device) continue;
    const auto found = left.find(buffer.name);
    EBB_ASSERT(found != left.end());
    Storage& storage = storages_[first_life_[b]];
    EBB_ASSERT(found->second.size() == storage.data.size());
    storage.data = std::move(found->second);
  }
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
  for (std::uint32_t b = 0; b < plan().buffers.size(); ++b) {
    const auto found = known.find(plan().buffers[b].name);
    lived_[b] = found != known.end();
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

void ReferenceRank::first_values() {
  const kernels::Run all{.offset = 0, .index = 0, .numel = program_->padded.value};
  kernels::fill_random_ref(kernel_type(plan().precision.params), data(program_->params), std::span(&all, 1),
                           options_.seed, 1);
  for (const StatePlace& place : program_->before) {
    std::byte* const at = state(place);
    const kernels::Run run{.offset = 0, .index = place.at.value, .numel = place.elements.numel().value};
    if (place.state == kMaster)
      kernels::fill_random_ref(kernels::Type::fp32, at, std::span(&run, 1), options_.seed, 1);
    else
      std::memset(at, 0, static_cast<std::size_t>(run.numel * bytes_per_element(plan().precision, place.state)));
  }
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

std::byte* ReferenceRank::state(const StatePlace& place) {
  const std::vector<std::uint32_t>& life = in_life_ ? last_life_ : first_life_;
  if (place.on_device) return data({life[place.device.buffer.index]}) + place.device.at.value;
  return (place.host == Memory::pinned ? pinned_ : pageable_).data() + place.host_at.value;
}

void ReferenceRank::count(Bytes change) {
  live_ += change;
  numbers_.peak_live = std::max(numbers_.peak_live, live_);
}

void ReferenceRank::begin_step() {
  ended_.assign(plan().ops.size(), false);
  pending_.clear();
  losses_.clear();
  now_ = {};
  now_.loss_scale = place_.loss_scale;
  live_ = {0};
  changes_.assign(plan().ops.size(), Bytes{0});
  for (Storage& storage : storages_) storage.alive = false;
  for (std::uint32_t b = 0; b < plan().buffers.size(); ++b) {
    const Buffer& buffer = plan().buffers[b];
    if (!buffer.initial) continue;
    storages_[first_life_[b]].alive = true;
    if (buffer.memory == Memory::device) count(buffer.bytes);
  }
}

void ReferenceRank::hand_back(Storage& storage) {
  storage.alive = false;
  poison(storage.data);
}

void ReferenceRank::run(std::uint32_t id) {
  const Op& op = plan().ops[id];
  const Bound& bound = actions_[id];
  if (op.kind == OpKind::allocate) {
    Storage& storage = storages_[bound.storage];
    storage.alive = true;
    if (std::exchange(storage.strayed, false)) poison(storage.data);  // otherwise it still is
    changes_[id] = device_bytes(op.buffer);
    return count(changes_[id]);
  }
  if (op.kind == OpKind::release) {
    changes_[id] = {-device_bytes(op.buffer).value};
    count(changes_[id]);
    if (op.after.valid() && !ended_[op.after.index])
      pending_.push_back({op.after.index, bound.storage});
    else
      hand_back(storages_[bound.storage]);
    return;
  }
  for (const std::uint32_t used : bound.uses) {
    if (storages_[used].alive || plan().buffers[storages_[used].buffer.index].memory != Memory::device) continue;
    storages_[used].strayed = true;
    ++numbers_.strays;
  }
  running_ = id;
  std::visit([this](const auto& action) { operate(action); }, bound.action);
  if (id == last_backward_) inject();
}

void ReferenceRank::end(std::uint32_t op) {
  ended_[op] = true;
  for (const Pending& pending : pending_)
    if (pending.after == op) hand_back(storages_[pending.storage]);
}

/// What lives on into the next step is in the last life of its buffer; there it is the first one.
void ReferenceRank::end_step() {
  for (std::uint32_t b = 0; b < plan().buffers.size(); ++b) {
    if (first_life_[b] != last_life_[b]) std::swap(storages_[first_life_[b]].data, storages_[last_life_[b]].data);
  }
  numbers_.steps.push_back(numbers_of_step());
  place_ = after_step(options_, place_, false, now_.digest);
}

StepNumbers ReferenceRank::numbers_of_step() const {
  StepNumbers numbers = now_;
  for (const double loss : losses_) numbers.loss += loss;
  return numbers;
}

Bytes ReferenceRank::device_bytes(BufferId id) const {
  const Buffer& buffer = plan().buffers[id.index];
  return buffer.memory == Memory::device ? buffer.bytes : Bytes{0};
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

std::function<std::byte*(BufferId)> ReferenceRank::buffers_of(const Bound& bound) {
  return [this, &bound](BufferId id) {
    for (const auto& [buffer, storage] : bound.named)
      if (buffer == id.index) return storages_[storage].data.data();
    assertion_failed("an op names the buffers of quantised weights that it uses", __FILE__, __LINE__);
  };
}

RankNumbers ReferenceRank::finish() {
  now_ = {};
  for (const StatePlace& place : program_->after) {
    const Dtype type = place.state == kMaster ? Dtype::fp32 : moment_type(place.state);
    digest(type, state(place), place.state, place.elements.begin, {0}, place.elements.numel());
  }
  digest(plan().precision.params, data(program_->params), kParams, 0, {0}, program_->padded);
  numbers_.final_state = now_.digest;
  return std::move(numbers_);
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

Dtype ReferenceRank::moment_type(StateBits state) const {
  return state == kExpAvg ? plan().precision.exp_avg : plan().precision.exp_avg_sq;
}

void ReferenceRank::digest(Dtype type, const std::byte* base, StateBits state, std::int64_t element, Bytes at,
                           Numel numel) {
  const kernels::Run run{.offset = at.value, .index = element, .numel = numel.value};
  now_.digest += kernels::digest_ref(kernel_type(type), base, std::span(&run, 1), digest_tag(state));
}

}  // namespace ebb::replay
