#include "planner/newer_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

namespace ebb {

namespace {

constexpr std::array<std::string_view, 3> kNames = {"exp_avg", "exp_avg_sq", "master"};

constexpr bool has(std::uint8_t states, std::size_t state) { return ((states >> state) & 1U) != 0; }

std::string names(std::uint8_t states) {
  std::string text;
  for (std::size_t state = 0; state < kNames.size(); ++state) {
    if (!has(states, state)) continue;
    if (!text.empty()) text += ", ";
    text += kNames[state];
  }
  return text;
}

bool empty(ElementRange range) { return range.begin >= range.end; }
bool within(ElementRange inner, ElementRange outer) { return outer.begin <= inner.begin && inner.end <= outer.end; }

}  // namespace

NewerState::NewerState(const Plan& plan) : plan_(plan), present_(plan.buffers.size()), alive_(plan.buffers.size()) {
  for (std::uint32_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    alive_[b] = buffer.initial;
    if (!tracked({b})) continue;
    on_device_ |= states_of({b});
    present_[b] = buffer.holds;
    if (buffer.initial && !empty(buffer.holds)) place(buffer.holds, states_of({b}), {{b}, OpId::none(), true});
  }
}

bool NewerState::tracked(BufferId buffer) const {
  if (!buffer.valid()) return false;
  const Buffer& what = plan_.buffers[buffer.index];
  return what.memory == Memory::device && what.role == Role::state;
}

std::uint8_t NewerState::states_of(BufferId buffer) const {
  return tracked(buffer) ? plan_.buffers[buffer.index].states & kAllState : std::uint8_t{0};
}

/// The first cell that ends behind `at`.
NewerState::Cells::iterator NewerState::first_at(std::int64_t at) {
  const auto next = cells_.upper_bound(at);
  if (next == cells_.begin()) return next;
  const auto before = std::prev(next);
  return before->second.end > at ? before : next;
}

/// Cuts cells in two where `range` begins and ends; the first cell in it or behind it.
NewerState::Cells::iterator NewerState::cut(ElementRange range) {
  const auto cut_at = [&](Cells::iterator cell, std::int64_t at) {
    Cell right = cell->second;
    cell->second.end = at;
    return cells_.emplace_hint(std::next(cell), at, right);
  };
  auto first = first_at(range.begin);
  if (first != cells_.end() && first->first < range.begin) first = cut_at(first, range.begin);
  auto last = first;
  while (last != cells_.end() && last->second.end < range.end) ++last;
  if (last != cells_.end() && last->first < range.end && last->second.end > range.end) cut_at(last, range.end);
  return first;
}

/// The first cell in `range` with states for which `wrong` holds.
template <class Wrong>
NewerState::Fault NewerState::find(ElementRange range, std::uint8_t states, Wrong wrong) {
  for (auto cell = first_at(range.begin); cell != cells_.end() && cell->first < range.end; ++cell) {
    Fault fault;
    for (std::size_t state = 0; state < kNames.size(); ++state) {
      const Copy& copy = cell->second.copies[state];
      if (!has(states, state) || !wrong(copy)) continue;
      if (fault.states == 0) fault.copy = copy;
      fault.states |= static_cast<std::uint8_t>(1U << state);
    }
    if (fault.states == 0) continue;
    fault.range = {std::max(cell->first, range.begin), std::min(cell->second.end, range.end)};
    return fault;
  }
  return {};
}

/// Elements whose newest value is not in `from`, where that is for the state, or else in no buffer at all.
NewerState::Fault NewerState::absent(ElementRange range, std::uint8_t states, BufferId from) {
  const std::uint8_t own = states_of(from);
  std::int64_t at = range.begin;
  for (auto cell = first_at(at); at < range.end && cell != cells_.end() && cell->first <= at; ++cell) {
    Fault fault;
    for (std::size_t state = 0; state < kNames.size(); ++state) {
      if (!has(states, state)) continue;
      const Copy& copy = cell->second.copies[state];
      if (has(own, state) ? copy.buffer == from : copy.buffer.valid()) continue;
      if (fault.states == 0) fault.copy = copy;
      fault.states |= static_cast<std::uint8_t>(1U << state);
    }
    const std::int64_t end = std::min(cell->second.end, range.end);
    if (fault.states != 0) {
      fault.range = {at, end};
      return fault;
    }
    at = end;
  }
  if (at >= range.end) return {};
  const auto next = cells_.lower_bound(at);
  const std::int64_t end = next == cells_.end() ? range.end : std::min(next->first, range.end);
  return {.range = {at, end}, .states = states, .copy = {}};
}

void NewerState::place(ElementRange range, std::uint8_t states, const Copy& copy) {
  // Old bytes of the host do not take the newest value's place elsewhere.
  const auto keeps = [&](const Copy& there) { return !copy.newer && there.newer && there.buffer != copy.buffer; };
  auto cell = cut(range);
  for (std::int64_t at = range.begin; at < range.end;) {
    if (cell == cells_.end() || cell->first > at) {
      const std::int64_t end = cell == cells_.end() ? range.end : std::min(cell->first, range.end);
      cell = cells_.emplace_hint(cell, at, Cell{end, {}});
    }
    for (std::size_t state = 0; state < kNames.size(); ++state)
      if (has(states, state) && !keeps(cell->second.copies[state])) cell->second.copies[state] = copy;
    at = cell->second.end;
    ++cell;
  }
}

/// `from` has no newest value of these any more; none: no buffer has.
void NewerState::drop(ElementRange range, std::uint8_t states, BufferId from) {
  for (auto cell = cut(range); cell != cells_.end() && cell->first < range.end;) {
    bool any = false;
    for (std::size_t state = 0; state < kNames.size(); ++state) {
      Copy& copy = cell->second.copies[state];
      if (has(states, state) && (!from.valid() || copy.buffer == from)) copy = {};
      any = any || copy.buffer.valid();
    }
    cell = any ? std::next(cell) : cells_.erase(cell);
  }
}

/// Written where they are.
void NewerState::make_newer(ElementRange range, std::uint8_t states, OpId writer) {
  if (states == 0) return;
  for (auto cell = cut(range); cell != cells_.end() && cell->first < range.end; ++cell) {
    for (std::size_t state = 0; state < kNames.size(); ++state) {
      Copy& copy = cell->second.copies[state];
      if (has(states, state) && copy.buffer.valid()) copy = {copy.buffer, writer, true};
    }
  }
}

/// The host has the newest value, too.
void NewerState::make_current(ElementRange range, std::uint8_t states) {
  for (auto cell = cut(range); cell != cells_.end() && cell->first < range.end; ++cell)
    for (std::size_t state = 0; state < kNames.size(); ++state)
      if (has(states, state)) cell->second.copies[state].newer = false;
}

/// `how`: what op `id` does with the elements, or, without an op, what is wrong with them.
void NewerState::report(HazardKind kind, OpId id, const Fault& fault, std::string_view how,
                        std::vector<Hazard>& hazards) const {
  const OpId writer = fault.copy.writer;
  const BufferId buffer = fault.copy.buffer;
  std::string text = id.valid() ? describe(plan_, id) : std::string("the plan");
  text += fmt::format(" {} {} of elements {} to {}", how, names(fault.states), fault.range.begin, fault.range.end - 1);
  if (writer.valid())
    text += fmt::format(", whose newest value is of {}", describe(plan_, writer));
  else if (buffer.valid() && fault.copy.newer)
    text += ", whose newest value is there since the plan began";
  if (buffer.valid()) text.append(" [").append(plan_.buffers[buffer.index].name).append("]");
  hazards.push_back(
      {kind, writer.valid() ? writer : id, writer.valid() ? id : OpId::none(), buffer, std::nullopt, std::move(text)});
}

void NewerState::read_device(OpId id, const Op& op, std::vector<Hazard>& hazards) {
  const auto states = static_cast<std::uint8_t>(op.states & on_device_);
  const Fault fault = absent(op.range, states, op.buffer);
  if (fault.states == 0) return;
  const bool own = (states_of(op.buffer) & fault.states) != 0;
  const std::string how = own ? fmt::format("finds no newest value in {}:", plan_.buffers[op.buffer.index].name)
                              : std::string("finds no newest value on the device:");
  report(HazardKind::stale_read, id, fault, how, hazards);
}

void NewerState::read_host(OpId id, const Op& op, std::vector<Hazard>& hazards) {
  const Fault old = find(op.range, op.states, [](const Copy& copy) { return copy.newer; });
  if (old.states == 0) return;
  report(HazardKind::stale_read, id, old, "reads the host's old", hazards);
  if (op.kind != OpKind::copy_h2d) return;
  const Fault lost =
      find(op.range, op.states, [&](const Copy& copy) { return copy.newer && copy.buffer == op.buffer; });
  if (lost.states != 0) report(HazardKind::lost_state, id, lost, "overwrites the only newest", hazards);
}

/// `buffer` loses what lies there.
void NewerState::leave(OpId id, BufferId buffer, std::string_view how, std::vector<Hazard>& hazards) {
  const ElementRange range = present_[buffer.index];
  if (empty(range)) return;
  const std::uint8_t states = states_of(buffer);
  const Fault fault = find(range, states, [&](const Copy& copy) { return copy.newer && copy.buffer == buffer; });
  if (fault.states != 0) report(HazardKind::lost_state, id, fault, how, hazards);
  drop(range, states, buffer);
}

/// Elements come into op.buffer, in place of others unless they lie there already.
void NewerState::fill(OpId id, const Op& op, bool newer, std::vector<Hazard>& hazards) {
  const auto states = static_cast<std::uint8_t>(op.states & states_of(op.buffer));
  if (states == 0 || empty(op.range)) return;
  ElementRange& present = present_[op.buffer.index];
  if (!within(op.range, present)) {
    leave(id, op.buffer, "takes the place of the only newest", hazards);
    present = op.range;
  }
  place(op.range, states, {op.buffer, id, newer});
}

void NewerState::copy_in(OpId id, const Op& op, std::vector<Hazard>& hazards) {
  // A checkpoint's state replaces whatever there is.
  if (op.host_buffer.valid()) return fill(id, op, true, hazards);
  read_host(id, op, hazards);
  fill(id, op, false, hazards);
}

void NewerState::kernel(OpId id, const Op& op, std::vector<Hazard>& hazards) {
  switch (op.work) {
    case Work::adam:
    case Work::adam_foreach:
      read_device(id, op, hazards);
      make_newer(op.range, op.states & on_device_ & static_cast<std::uint8_t>(~states_of(op.buffer)), id);
      return fill(id, op, true, hazards);
    case Work::zero_state:
    case Work::make_masters:
      return fill(id, op, true, hazards);
    case Work::cast:
    case Work::find_largest:
    case Work::quantize:
      return read_device(id, op, hazards);
    default:
      return;
  }
}

void NewerState::host_work(OpId id, const Op& op, std::vector<Hazard>& hazards) {
  if (op.host_buffer.valid()) return;
  if (op.work == Work::store || op.work == Work::cpu_adam) read_host(id, op, hazards);
  if (op.work == Work::cpu_adam || op.work == Work::fetch || op.work == Work::make_masters)
    drop(op.range, op.states, BufferId::none());
}

void NewerState::run(OpId id, const Op& op, std::vector<Hazard>& hazards) {
  if (op.kind == OpKind::allocate || op.kind == OpKind::release) {
    alive_[op.buffer.index] = op.kind == OpKind::allocate;
    if (!tracked(op.buffer)) return;
    if (op.kind == OpKind::release) leave(id, op.buffer, "hands back the only newest", hazards);
    present_[op.buffer.index] = plan_.buffers[op.buffer.index].holds;
    return;
  }
  if ((op.states & kAllState) == 0 || empty(op.range)) return;
  switch (op.kind) {
    case OpKind::copy_h2d:
      return copy_in(id, op, hazards);
    case OpKind::copy_d2h:
      read_device(id, op, hazards);
      if (!op.host_buffer.valid()) make_current(op.range, op.states);
      return;
    case OpKind::kernel:
      return kernel(id, op, hazards);
    case OpKind::host_work:
      return host_work(id, op, hazards);
    default:
      return;
  }
}

void NewerState::finish(std::vector<Hazard>& hazards) {
  for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
    if (!alive_[b] || !tracked({b}) || empty(plan_.buffers[b].holds)) continue;
    const Fault fault = absent(plan_.buffers[b].holds, states_of({b}), {b});
    if (fault.states == 0) continue;
    const std::string how = fmt::format("ends with old bytes in {}, which outlives it:", plan_.buffers[b].name);
    report(HazardKind::stale_read, OpId::none(), fault, how, hazards);
    if (!hazards.back().buffer.valid()) hazards.back().buffer = {b};
  }
}

}  // namespace ebb
