// The compiler's frame: tables, lives of buffers, and which buffer an op means.
#include "replay/program_compiler.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"
#include "replay/program_largest.hpp"

namespace ebb::replay {

ProgramCompiler::ProgramCompiler(const Plan& plan, const std::string& file, std::optional<LifeSetting> life)
    : plan_(plan),
      file_(file),
      life_(life),
      owned_(plan),
      parameters_(plan),
      staged_(plan.buffers.size()),
      alive_(plan.buffers.size()),
      layouts_(plan.buffers.size()),
      filled_(plan.buffers.size()) {
  program_.plan = &plan;
  program_.padded = plan.buckets.back().end;
  program_.owned = {owned_.total()};
  program_.gradient_scale = gradient_scale_of(plan);
  program_.params = only(Role::params, parameters_.bytes());
  program_.grads = only(Role::grads, bytes_of(program_.padded, size_of(plan.precision.grads)));
}

void ProgramCompiler::reject(const std::string& problem, const std::string& cure) const {
  const Op& what = op();
  std::string name(name_of(what.kind));
  if (what.work != Work::none) name.append(" ").append(name_of(what.work));
  if (what.chunk != kNoChunk) name.append(fmt::format(", chunk {}", what.chunk));
  throw InputError({.file = file_}, fmt::format("rank {}, op {} ({}): {}", plan_.rank, at_, name, problem), cure);
}

void ProgramCompiler::reject_plan(const std::string& problem, const std::string& cure) const {
  throw InputError({.file = file_}, fmt::format("rank {}: {}", plan_.rank, problem), cure);
}

/// The buffer of all parameters or gradients.
BufferId ProgramCompiler::only(Role role, Bytes needed) const {
  BufferId found;
  for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
    if (plan_.buffers[b].role != role) continue;
    if (found.valid()) reject_plan(fmt::format("more than one buffer of role {}", name_of(role)));
    found = {b};
  }
  if (!found.valid())
    reject_plan(fmt::format("no buffer of role {}", name_of(role)), "write the plan again with this ebb");
  const Buffer& buffer = buffer_of(found);
  if (buffer.memory != Memory::device || !buffer.initial)
    reject_plan(fmt::format("buffer {} (\"{}\") is not on the device from the start", found.index, buffer.name));
  if (buffer.bytes < needed)
    reject_plan(fmt::format("buffer {} (\"{}\") has {} bytes, its elements need {}", found.index, buffer.name,
                            buffer.bytes.value, needed.value));
  return found;
}

void ProgramCompiler::live(BufferId buffer, const char* as) const {
  if (!buffer.valid()) reject(fmt::format("names no buffer ({})", as));
  if (!alive_[buffer.index]) reject(fmt::format("buffer \"{}\" is not alive ({})", buffer_of(buffer).name, as));
  if (buffer_of(buffer).memory != Memory::device)
    reject(fmt::format("buffer \"{}\" is not on the device ({})", buffer_of(buffer).name, as));
}

void ProgramCompiler::room(BufferId buffer, Bytes needed) const {
  if (buffer_of(buffer).bytes < needed)
    reject(fmt::format("buffer \"{}\" has {} bytes, what lies in it needs {}", buffer_of(buffer).name,
                       buffer_of(buffer).bytes.value, needed.value));
}

void ProgramCompiler::owned_range(ElementRange range) const {
  if (range.begin < 0 || range.begin >= range.end || range.end > owned_.total())
    reject(fmt::format("elements [{}, {}) are not part of the {} owned ones", range.begin, range.end, owned_.total()));
}

void ProgramCompiler::begin_or_end_life() {
  const BufferId id = op().buffer;
  if (!id.valid()) reject("names no buffer");
  const bool begins = op().kind == OpKind::allocate;
  if (id == program_.params || id == program_.grads) reject("parameters and gradients stay on the device");
  if (buffer_of(id).memory != Memory::device && buffer_of(id).role != Role::checkpoint)
    reject("is of a buffer that is not on the device");
  if (alive_[id.index] == begins)
    reject(fmt::format("buffer \"{}\" is {}", buffer_of(id).name, begins ? "alive already" : "not alive"));
  alive_[id.index] = begins;
  filled_[id.index].reset();
  if (begins) program_.tensors[id.index] = std::max({op().calls, program_.tensors[id.index], 1U});
}

const StateLayout& ProgramCompiler::layout_of(BufferId id, ElementRange range) {
  const Buffer& buffer = buffer_of(id);
  if (buffer.role != Role::state) reject(fmt::format("buffer \"{}\" holds no state", buffer.name));
  const std::uint8_t states = buffer.states & (masters_apart() ? kAllState : kMoments);
  if (buffer.holds.numel().value == 0) {
    slot_ = StateLayout(owned_, plan_.precision, states, range, buffer.packed);
    room(id, slot_.bytes());
    return slot_;
  }
  std::optional<StateLayout>& layout = layouts_[id.index];
  if (!layout) {
    owned_range(buffer.holds);
    layout = StateLayout(owned_, plan_.precision, states, buffer.holds, buffer.packed);
    room(id, layout->bytes());
  }
  return *layout;
}

/// The live buffer that holds `state` of `range` by its `holds`; without one, the slot into which they came last.
BufferId ProgramCompiler::holder_of(StateBits state, ElementRange range) const {
  BufferId found, slot;
  for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
    const Buffer& buffer = plan_.buffers[b];
    if (!alive_[b] || buffer.role != Role::state || (buffer.states & state) == 0) continue;
    if (buffer.holds.numel().value == 0) {
      const bool filled = filled_[b] && filled_[b]->range == range;
      if (filled && (!slot.valid() || filled_[slot.index]->op < filled_[b]->op)) slot = {b};
      continue;
    }
    if (buffer.holds.begin > range.begin || buffer.holds.end < range.end) continue;
    if (found.valid()) reject("more than one buffer holds a state of these elements");
    found = {b};
  }
  if (found.valid()) return found;
  if (!slot.valid()) reject("no live buffer holds a state that it needs");
  return slot;
}

/// Their fp32 copies where they are alive, else the gradients.
BufferId ProgramCompiler::gradients_for(ElementRange range) const {
  for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
    const Buffer& buffer = plan_.buffers[b];
    if (!alive_[b] || buffer.role != Role::grad_copies) continue;
    if (buffer.holds.begin <= range.begin && buffer.holds.end >= range.end) return {b};
  }
  return program_.grads;
}

/// The live workspace of the optimizer step: of no role, and not there before the step.
BufferId ProgramCompiler::scratch_for(Bytes bytes) const {
  for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
    const Buffer& buffer = plan_.buffers[b];
    if (alive_[b] && buffer.role == Role::other && !buffer.initial && buffer.memory == Memory::device &&
        buffer.ends_with == Phase::step && buffer.bytes >= bytes)
      return {b};
  }
  reject(fmt::format("no live buffer of {} bytes for its temporaries", bytes.value));
}

Dtype ProgramCompiler::type_of_gradients(BufferId grads) const {
  return grads == program_.grads ? plan_.precision.grads : Dtype::fp32;
}

Bytes ProgramCompiler::gradient_at(BufferId grads, const Piece& piece) const {
  if (grads == program_.grads) return {piece.at * size_of(plan_.precision.grads)};
  return {4 * (piece.elements.begin - buffer_of(grads).holds.begin)};
}

Program ProgramCompiler::run() {
  program_.tensors.assign(plan_.buffers.size(), 1);
  for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
    const Buffer& buffer = plan_.buffers[b];
    alive_[b] = buffer.initial;
    if (buffer.role == Role::grad_copies && (buffer.holds.end > owned_.total() || buffer.memory != Memory::device ||
                                             buffer.bytes.value / 4 < buffer.holds.numel().value))
      reject_plan(fmt::format("buffer {} (\"{}\") is too small for its copies", b, buffer.name));
  }
  find_host_state();
  place_staged();
  find_quantized();
  const std::vector<bool> alive_before = alive_;
  program_.actions.reserve(plan_.ops.size());
  for (at_ = 0; at_ < plan_.ops.size(); ++at_) program_.actions.push_back(action());
  for (std::uint32_t b = 0; b < plan_.buffers.size() && plan_.part == LifePart::step; ++b) {
    if (alive_[b] == plan_.buffers[b].initial) continue;
    reject_plan(fmt::format("buffer {} (\"{}\") is {} when the plan ends", b, plan_.buffers[b].name,
                            alive_[b] ? "still alive" : "not alive any more"),
                "a step must end as it began, or it cannot be repeated");
  }
  program_.before = places(alive_before, existing(true));
  program_.after = places(alive_, existing(false));
  check_stores();
  check_largest(program_, file_);
  return std::move(program_);
}

Program compile(const Plan& plan, const std::string& file) {
  check_tables(plan, file);
  Program program = ProgramCompiler(plan, file).run();
  EBB_ASSERT(every_place_is_inside(program));
  return program;
}

}  // namespace ebb::replay
