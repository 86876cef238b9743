#include "planner/plan_builder.hpp"

#include <charconv>

#include "models/errors.hpp"

namespace ebb {

PlanBuilder::PlanBuilder(Plan& plan, std::size_t expected_ops) : plan_(plan), order_(kStreamCount) {
  plan_.buffers.clear();
  plan_.ops.clear();
  plan_.deps.clear();
  plan_.ops.reserve(expected_ops);
  plan_.deps.reserve(expected_ops);
  order_.reserve(expected_ops);
  if (plan_.streams.size() != kStreamCount) {
    plan_.streams = {{"host", StreamKind::host},
                     {"compute", StreamKind::compute},
                     {"h2d", StreamKind::h2d},
                     {"d2h", StreamKind::d2h},
                     {"comm", StreamKind::comm}};
  }
}

BufferId PlanBuilder::next_buffer(Memory memory, Bytes bytes, bool initial, std::optional<Phase> ends_with) {
  plan_.buffers.push_back({{}, memory, bytes, initial, ends_with});
  if (initial && memory == Memory::device) live_ += bytes;
  return {static_cast<std::uint32_t>(plan_.buffers.size() - 1)};
}

BufferId PlanBuilder::buffer(std::string_view name, Memory memory, Bytes bytes, bool initial,
                             std::optional<Phase> ends_with) {
  const BufferId id = next_buffer(memory, bytes, initial, ends_with);
  plan_.buffers.back().name = name;
  return id;
}

BufferId PlanBuilder::buffer(std::string_view name, std::size_t index, Bytes bytes, std::optional<Phase> ends_with) {
  const BufferId id = next_buffer(Memory::device, bytes, false, ends_with);
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), index).ptr;
  std::string& text = plan_.buffers.back().name;
  text = name;
  text += ' ';
  text.append(digits.data(), end);
  return id;
}

void PlanBuilder::state(BufferId buffer, std::uint8_t states, ElementRange holds, bool packed) {
  Buffer& to = plan_.buffers[buffer.index];
  to.role = Role::state;
  to.states = states;
  to.holds = holds;
  to.packed = packed;
}

OpId PlanBuilder::add(Op op, std::initializer_list<OpId> deps) {
  std::array<OpId, 8> wanted;
  std::size_t count = 0;
  const auto want = [&](OpId dep) {
    if (!dep.valid()) return;
    EBB_ASSERT(count < wanted.size() && dep.index < plan_.ops.size());
    wanted[count++] = dep;
  };
  for (const OpId dep : deps) want(dep);
  if (op.stream != kHost) want(order_.last_on(kHost));

  // Keep what neither stream order nor another wanted dependency implies; of equal ones the first.
  const OpId previous = order_.last_on(op.stream);
  op.deps_begin = static_cast<std::uint32_t>(plan_.deps.size());
  for (std::size_t i = 0; i < count; ++i) {
    bool implied = previous.valid() && (wanted[i] == previous || order_.before(wanted[i], previous));
    for (std::size_t j = 0; j < count && !implied; ++j) {
      implied = order_.before(wanted[i], wanted[j]) || (j < i && wanted[i] == wanted[j]);
    }
    if (!implied) plan_.deps.push_back(wanted[i]);
  }
  op.deps_count = static_cast<std::uint32_t>(plan_.deps.size()) - op.deps_begin;
  plan_.ops.push_back(op);
  return order_.append(op.stream, plan_.deps_of(op));
}

OpId PlanBuilder::allocate(BufferId buffer, Phase phase, std::uint32_t chunk, std::uint32_t tensors) {
  if (plan_.buffers[buffer.index].memory == Memory::device) live_ += plan_.buffers[buffer.index].bytes;
  return add({.kind = OpKind::allocate,
              .phase = phase,
              .stream = kComputeStream,
              .chunk = chunk,
              .calls = tensors,
              .buffer = buffer});
}

OpId PlanBuilder::release(BufferId buffer, Phase phase, std::initializer_list<OpId> deps, OpId after,
                          std::uint32_t chunk) {
  if (plan_.buffers[buffer.index].memory == Memory::device) live_ = live_ - plan_.buffers[buffer.index].bytes;
  return add({.kind = OpKind::release,
              .phase = phase,
              .stream = kComputeStream,
              .chunk = chunk,
              .buffer = buffer,
              .after = after},
             deps);
}

}  // namespace ebb
