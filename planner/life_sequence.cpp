#include "planner/life_sequence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "planner/life_parts.hpp"

namespace ebb {

namespace {

using Alive = std::map<std::string, const Buffer*>;

void add(const Plan& plan, const Buffer& buffer, Alive& alive, std::vector<std::string>& breaks) {
  if (!alive.emplace(buffer.name, &buffer).second)
    breaks.push_back(fmt::format("{}: two buffers are called \"{}\"", name_of(plan.part), buffer.name));
}

Alive at_begin(const Plan& plan, std::vector<std::string>& breaks) {
  Alive alive;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.memory == Memory::device && buffer.initial) add(plan, buffer, alive, breaks);
  return alive;
}

Alive at_end(const Plan& plan, std::vector<std::string>& breaks) {
  std::vector<bool> lives;
  for (const Buffer& buffer : plan.buffers) lives.push_back(buffer.initial);
  for (const Op& op : plan.ops) {
    if (op.kind == OpKind::allocate) lives[op.buffer.index] = true;
    if (op.kind == OpKind::release) lives[op.buffer.index] = false;
  }
  Alive alive;
  for (std::size_t b = 0; b < lives.size(); ++b)
    if (lives[b] && plan.buffers[b].memory == Memory::device) add(plan, plan.buffers[b], alive, breaks);
  return alive;
}

bool same_content(const Buffer& a, const Buffer& b) {
  return a.bytes == b.bytes && a.role == b.role && a.states == b.states && a.holds == b.holds && a.packed == b.packed;
}

/// Whether the skip's ops begin as the step's, to the wait for the norm and with it.
bool same_beginning(const Plan& step, const Plan& skip) {
  for (std::size_t i = 0; i < std::min(step.ops.size(), skip.ops.size()); ++i) {
    const Op& op = step.ops[i];
    if (op != skip.ops[i]) return false;
    const auto deps = step.deps_of(op);
    if (!std::equal(deps.begin(), deps.end(), skip.deps_of(skip.ops[i]).begin())) return false;
    if (op.buffer.valid() && step.buffers[op.buffer.index] != skip.buffers[op.buffer.index]) return false;
    if (op.kind == OpKind::host_wait && op.buffer.valid() && step.buffers[op.buffer.index].role == Role::norm)
      return true;
  }
  return false;
}

void check_skip(std::span<const Plan> parts, LifePart step, LifePart skip, std::vector<std::string>& breaks) {
  const auto of = [&](LifePart part) {
    return std::find_if(parts.begin(), parts.end(), [&](const Plan& plan) { return plan.part == part; });
  };
  const auto taken = of(step);
  const auto skipped = of(skip);
  if (taken == parts.end() || skipped == parts.end() || same_beginning(*taken, *skipped)) return;
  breaks.push_back(fmt::format("{} does not begin as {} does", name_of(skip), name_of(step)));
}

}  // namespace

std::vector<std::string> sequence_breaks(const Plan& before, const Plan& after) {
  std::vector<std::string> breaks;
  const Alive left = at_end(before, breaks);
  const Alive found = at_begin(after, breaks);
  for (const auto& [name, buffer] : left) {
    const auto next = found.find(name);
    if (next == found.end())
      breaks.push_back(fmt::format("{} leaves \"{}\", which {} does not begin with", name_of(before.part), name,
                                   name_of(after.part)));
    else if (!same_content(*buffer, *next->second))
      breaks.push_back(fmt::format("\"{}\" is another buffer after {} than before {}", name, name_of(before.part),
                                   name_of(after.part)));
  }
  for (const auto& [name, buffer] : found)
    if (!left.contains(name))
      breaks.push_back(fmt::format("{} begins with \"{}\", which {} does not leave", name_of(after.part), name,
                                   name_of(before.part)));
  return breaks;
}

std::vector<std::string> life_breaks(std::span<const Plan> parts) {
  std::vector<std::string> breaks;
  for (const Plan& before : parts) {
    const std::span<const LifePart> next = followers(before.part);
    for (const Plan& after : parts) {
      if (std::find(next.begin(), next.end(), after.part) == next.end()) continue;
      for (std::string& text : sequence_breaks(before, after)) breaks.push_back(std::move(text));
    }
  }
  check_skip(parts, LifePart::step, LifePart::skip, breaks);
  check_skip(parts, LifePart::first_step, LifePart::first_skip, breaks);
  return breaks;
}

}  // namespace ebb
