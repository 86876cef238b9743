// Two parts of a life as one plan, as they would run without a wait between them: streams go on, buffers keep their
// storage by name. With `drain` as they do run: the host waits for all of the first before it issues the second.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/plan.hpp"

namespace ebb::test {

namespace joined_parts {

/// Where the second part's buffers are in the first; what the first has not is appended. A buffer of the second alone
/// that only has the name of one of the first becomes another.
inline std::vector<std::uint32_t> append_buffers(Plan& all, const Plan& next) {
  std::vector<std::uint32_t> place;
  const std::size_t before = all.buffers.size();
  for (const Buffer& buffer : next.buffers) {
    std::uint32_t b = 0;
    const auto same = [&](const Buffer& other) {
      return other.name == buffer.name && other.role != Role::checkpoint && other.bytes == buffer.bytes &&
             other.holds == buffer.holds && other.states == buffer.states;
    };
    while (b < before && !same(all.buffers[b])) ++b;
    if (b == before) {
      b = static_cast<std::uint32_t>(all.buffers.size());
      all.buffers.push_back(buffer);
    }
    place.push_back(b);
  }
  return place;
}

inline std::vector<std::uint32_t> append_streams(Plan& all, const Plan& next) {
  std::vector<std::uint32_t> place;
  for (const Stream& stream : next.streams) {
    const auto known = std::find_if(all.streams.begin(), all.streams.end(),
                                    [&](const Stream& other) { return other.kind == stream.kind; });
    place.push_back(static_cast<std::uint32_t>(known - all.streams.begin()));
    if (known == all.streams.end()) all.streams.push_back(stream);
  }
  return place;
}

inline void append_op(Plan& all, Op op, const std::vector<OpId>& deps) {
  op.deps_begin = static_cast<std::uint32_t>(all.deps.size());
  op.deps_count = static_cast<std::uint32_t>(deps.size());
  all.deps.insert(all.deps.end(), deps.begin(), deps.end());
  all.ops.push_back(op);
}

/// The host waits for the last op on every stream. Returns that wait.
inline OpId append_drain(Plan& all, Phase phase) {
  std::vector<OpId> last(all.streams.size(), OpId::none());
  std::uint32_t host = 0;
  for (std::uint32_t i = 0; i < all.ops.size(); ++i) last[all.ops[i].stream.index] = {i};
  while (all.streams[host].kind != StreamKind::host) ++host;
  std::erase_if(last, [](OpId op) { return !op.valid(); });
  append_op(all, {.kind = OpKind::host_wait, .phase = phase, .stream = {host}}, last);
  return {static_cast<std::uint32_t>(all.ops.size() - 1)};
}

}  // namespace joined_parts

/// The plan of the second part, with the first before it. The first must not be empty.
inline Plan joined(const Plan& first, const Plan& next, bool drain) {
  Plan all = first;
  all.part = next.part;
  const std::vector<std::uint32_t> buffers = joined_parts::append_buffers(all, next);
  const std::vector<std::uint32_t> streams = joined_parts::append_streams(all, next);
  const OpId wait = drain ? joined_parts::append_drain(all, next.ops.front().phase) : OpId::none();
  const auto shift = static_cast<std::uint32_t>(all.ops.size());
  for (Op op : next.ops) {
    std::vector<OpId> deps;
    for (const OpId dep : next.deps_of(op)) deps.push_back({dep.index + shift});
    if (drain) deps.push_back(wait);
    op.stream = {streams[op.stream.index]};
    for (BufferId* buffer : {&op.buffer, &op.host_buffer})
      if (buffer->valid()) *buffer = {buffers[buffer->index]};
    if (op.after.valid()) op.after = {op.after.index + shift};
    joined_parts::append_op(all, op, deps);
  }
  return all;
}

}  // namespace ebb::test
