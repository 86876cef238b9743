// Where state lies between steps, and the promise that every place is inside its buffer.
#include <fmt/format.h>

#include <algorithm>

#include "replay/program_compiler.hpp"

namespace ebb::replay {

/// Every copy and the host's Adam, before anything is placed: they decide what the host has.
void ProgramCompiler::find_host_state() {
  std::vector<HostUse> copies;
  std::optional<ElementRange> stepped;
  for (at_ = 0; at_ < plan_.ops.size(); ++at_) {
    const bool copies_state =
        (op().kind == OpKind::copy_h2d || op().kind == OpKind::copy_d2h) && !op().host_buffer.valid();
    const bool steps = op().kind == OpKind::host_work && op().work == Work::cpu_adam;
    if (!copies_state && !steps) continue;
    if (steps && op().range.numel().value == 0) continue;
    owned_range(op().range);
    if (steps) {
      if (stepped) reject("the host steps more than once");
      if (plan_.precision.grads != Dtype::fp32)
        reject(fmt::format("a host's Adam with gradients in {} is not replayed: it would round the clipped gradients",
                           name_of(plan_.precision.grads)),
               "set precision.grads: fp32");
      if (plan_.precision.exp_avg != Dtype::fp32 || plan_.precision.exp_avg_sq != Dtype::fp32)
        reject("a host's Adam with moments that are not fp32");
      stepped = op().range;
      continue;
    }
    if (op().host != Memory::pinned) reject("copies to or from host memory that is not pinned");
    unsigned states = op().states & ((masters_apart() ? kAllState : kMoments) | kGrads);
    if ((op().states & kParams) != 0) states |= kMaster;
    const bool packed =
        op().buffer.valid() && buffer_of(op().buffer).role == Role::state && buffer_of(op().buffer).packed;
    copies.push_back({static_cast<std::uint8_t>(states), op().range, packed});
  }
  if (life_ && life_->host != nullptr) {
    host_ = *life_->host;
  } else if (!host_.build(owned_, plan_.precision, copies, stepped)) {
    reject_plan("copies of packed state are cut in more than one way, or mixed with others");
  }
  program_.pinned = host_.pinned();
  program_.pageable = host_.pageable();
  if (plan_.part == LifePart::step) check_host_bytes();
}

/// In the steady step the plan's host buffers are what the replay needs. Elsewhere they may not all be there yet.
void ProgramCompiler::check_host_bytes() const {
  Bytes pinned{0}, pageable{0};
  for (const Buffer& buffer : plan_.buffers) {
    if (buffer.role == Role::checkpoint) continue;
    if (buffer.memory == Memory::pinned) pinned += buffer.bytes;
    if (buffer.memory == Memory::pageable) pageable += buffer.bytes;
  }
  if (pinned != program_.pinned || pageable != program_.pageable)
    reject_plan(fmt::format("host buffers of {} B pinned and {} B pageable, but its host state needs {} B and {} B",
                            pinned.value, pageable.value, program_.pinned.value, program_.pageable.value));
}

/// Buffers of role checkpoint lie one after another behind the host store's own bytes.
void ProgramCompiler::place_staged() {
  constexpr std::int64_t kAlignment = 256;
  Bytes at{round_up(program_.pinned.value, kAlignment)};
  bool any = false;
  for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
    const Buffer& buffer = plan_.buffers[b];
    if (buffer.role != Role::checkpoint) continue;
    if (buffer.memory != Memory::pinned) reject_plan(fmt::format("buffer {} (\"{}\") is not pinned", b, buffer.name));
    staged_[b] = at;
    at = {round_up((at + buffer.bytes).value, kAlignment)};
    any = true;
  }
  if (!any) return;
  program_.staged = at - program_.pinned;
  program_.pinned = at;
}

/// Which states there are before the plan's first op, or after its last.
std::uint8_t ProgramCompiler::existing(bool before) const {
  const bool early = life_ ? life_->early_masters : !plan_.precision.optimizer_holds_masters();
  const std::uint8_t some = early || !masters_apart() ? kMaster : 0;
  switch (plan_.part) {
    case LifePart::init:
      return before ? 0 : some;
    case LifePart::load:
    case LifePart::first_step:
      return before ? some : static_cast<std::uint8_t>(kAllState);
    case LifePart::load_params:
    case LifePart::first_skip:
      return some;
    case LifePart::step:
    case LifePart::reload:
    case LifePart::skip:
    case LifePart::save:
      break;
  }
  return kAllState;
}

/// The host's places of `state` for `range`, or that masters are parameters; reject_plan() where there is neither.
void ProgramCompiler::place_on_host(std::vector<StatePlace>& places, StateBits state, ElementRange range) const {
  const bool moment = state != kMaster;
  for (const Piece& piece : owned_.pieces(range)) {
    for (std::int64_t begin = piece.elements.begin; begin < piece.elements.end;) {
      StatePlace place;
      place.state = state;
      place.at = {piece.at + begin - piece.elements.begin};
      std::int64_t end = std::min(piece.elements.end, host_.region_end(begin));
      const auto stepped = host_.stepped();
      const bool stepped_here = stepped && begin >= stepped->begin && begin < stepped->end;
      if (stepped && begin < stepped->begin) end = std::min(end, stepped->begin);
      if (stepped_here) end = std::min(end, stepped->end);
      const auto pinned = host_.at(state, piece.shard, begin);
      if (stepped_here && moment) {
        place.host = Memory::pageable;
        place.host_at = host_.moment(state, begin);
      } else if (pinned) {
        place.host_at = *pinned;
      } else if (!moment && !masters_apart()) {
        place.on_device = true;
        place.device = {program_.params, parameters_.at(place.at.value)};
      } else {
        reject_plan(fmt::format("no buffer or copy says where the state of element {} is", begin));
      }
      place.elements = {begin, end};
      places.push_back(place);
      begin = end;
    }
  }
}

/// Where `states` are while the buffers `alive` are: in those that hold them, else on the host.
std::vector<StatePlace> ProgramCompiler::places(const std::vector<bool>& alive, std::uint8_t states) {
  std::vector<StatePlace> places;
  for (const StateBits state : kStateOrder) {
    if ((states & state) == 0) continue;
    std::vector<std::uint32_t> holders;
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& buffer = plan_.buffers[b];
      if (buffer.role != Role::state || !alive[b] || (buffer.states & state) == 0) continue;
      if (state == kMaster && !masters_apart()) continue;
      if (buffer.memory != Memory::device) reject_plan(fmt::format("state buffer \"{}\" is on the host", buffer.name));
      if (buffer.holds.numel().value == 0 || buffer.holds.begin < 0 || buffer.holds.end > owned_.total())
        reject_plan(fmt::format("buffer {} (\"{}\") does not say whose state it holds", b, buffer.name));
      holders.push_back(b);
    }
    const auto holds = [&](std::uint32_t b) { return plan_.buffers[b].holds; };
    std::sort(holders.begin(), holders.end(),
              [&](std::uint32_t a, std::uint32_t b) { return holds(a).begin < holds(b).begin; });
    std::int64_t behind = 0;
    for (const std::uint32_t b : holders) {
      if (holds(b).begin < behind) reject_plan("two buffers hold the same state between plans");
      place_on_host(places, state, {behind, holds(b).begin});
      if (!layouts_[b])
        layouts_[b] =
            StateLayout(owned_, plan_.precision, plan_.buffers[b].states & (masters_apart() ? kAllState : kMoments),
                        holds(b), plan_.buffers[b].packed);
      if (plan_.buffers[b].bytes < layouts_[b]->bytes())
        reject_plan(fmt::format("buffer {} (\"{}\") is too small for its state", b, plan_.buffers[b].name));
      for (const Piece& piece : owned_.pieces(holds(b)))
        places.push_back({.state = state,
                          .elements = piece.elements,
                          .at = {piece.at},
                          .on_device = true,
                          .device = {{b}, layouts_[b]->at(state, piece.shard, piece.elements.begin)}});
      behind = holds(b).end;
    }
    place_on_host(places, state, {behind, owned_.total()});
  }
  return places;
}

}  // namespace ebb::replay
