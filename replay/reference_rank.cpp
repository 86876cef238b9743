// Lives of storage, first values, steps and final numbers. What ops compute: reference_ops.cpp; from part to part of a
// life: reference_rank_life.cpp.
#include "replay/reference_rank.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/digest.hpp"
#include "kernels/elementwise.hpp"

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

}  // namespace

ReferenceRank::ReferenceRank(const Program& program, const TrainingOptions& options, Begin begin)
    : program_(&program), in_life_(begin == Begin::life), options_(options), place_(first_place(options)) {
  pinned_.resize(static_cast<std::size_t>(program.pinned.value), std::byte{kernels::kPoison});
  // Fresh pages are 0: so begin the moments that the host steps.
  pageable_.resize(static_cast<std::size_t>(program.pageable.value),
                   std::byte{in_life_ ? std::uint8_t{0} : kernels::kPoison});
  bind();
  if (in_life_)
    first_parameters();
  else
    first_values();
}

std::vector<std::byte> ReferenceRank::poisoned(std::uint32_t buffer) {
  const Buffer& what = plan().buffers[buffer];
  if (what.memory != Memory::device || what.role == Role::other) return {};
  const auto size = static_cast<std::size_t>(what.bytes.value);
  std::vector<std::vector<std::byte>>& spare = spare_[size];
  if (spare.empty()) return std::vector<std::byte>(size, std::byte{kernels::kPoison});
  std::vector<std::byte> data = std::move(spare.back());
  spare.pop_back();
  return data;
}

std::uint32_t ReferenceRank::open(std::uint32_t buffer, std::vector<std::byte> data) {
  storages_.push_back({{buffer}, false, false, std::move(data)});
  return static_cast<std::uint32_t>(storages_.size() - 1);
}

/// Gives every life of a buffer its storage, and every op those of its moment in program order. `left`: what the part
/// before has left, which is all that this one begins with; of a first part nothing.
void ReferenceRank::bind(Contents left) {
  storages_.clear();
  first_life_.clear();
  lived_.assign(plan().buffers.size(), false);
  for (std::uint32_t b = 0; b < plan().buffers.size(); ++b) {
    const Buffer& buffer = plan().buffers[b];
    lived_[b] = buffer.initial;
    const auto found = left.find(buffer.name);
    const bool goes_on = found != left.end() && buffer.initial && buffer.memory == Memory::device;
    first_life_.push_back(goes_on ? open(b, std::move(found->second)) : open(b));
  }
  lives_ = lived_;
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
    if (stand != nullptr && stand->backward && !stand->fills()) last_backward_ = i;
    if (i != program_->decision.index || began_with_ != nullptr) continue;
    life_at_decision_ = last_life_;
    lived_at_decision_ = lived_;
    lives_at_decision_ = lives_;
  }
}

void ReferenceRank::bind(std::uint32_t i) {
  const Op& op = plan().ops[i];
  Bound& bound = actions_[i];
  bound = {};
  if (op.kind == OpKind::allocate) {
    if (lived_[op.buffer.index]) last_life_[op.buffer.index] = open(op.buffer.index);
    lived_[op.buffer.index] = lives_[op.buffer.index] = true;
  }
  if (op.kind == OpKind::release) lives_[op.buffer.index] = false;
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

Dtype ReferenceRank::moment_type(StateBits state) const {
  return state == kExpAvg ? plan().precision.exp_avg : plan().precision.exp_avg_sq;
}

void ReferenceRank::digest(Dtype type, const std::byte* base, StateBits state, std::int64_t element, Bytes at,
                           Numel numel) {
  const kernels::Run run{.offset = at.value, .index = element, .numel = numel.value};
  now_.digest += kernels::digest_ref(kernel_type(type), base, std::span(&run, 1), digest_tag(state));
}

}  // namespace ebb::replay
