#include "replay/device_lives.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"

namespace ebb::replay {

namespace {

bool on_compute(const Plan& plan, const Op& op) { return plan.streams[op.stream.index].kind == StreamKind::compute; }

/// By op id; -1 off the compute stream.
std::vector<std::int64_t> compute_positions(const Plan& plan) {
  std::vector<std::int64_t> positions(plan.ops.size(), -1);
  std::int64_t next = 0;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (on_compute(plan, plan.ops[i])) positions[i] = next++;
  }
  return positions;
}

void check_stream(const Plan& plan, std::size_t op) {
  if (on_compute(plan, plan.ops[op])) return;
  throw InputError({},
                   fmt::format("op {} ({}) is on stream '{}'", op, name_of(plan.ops[op].kind),
                               plan.streams[plan.ops[op].stream.index].name),
                   "device memory is allocated and released on the compute stream");
}

}  // namespace

std::vector<std::int64_t> next_on_compute(const Plan& plan) {
  const std::vector<std::int64_t> positions = compute_positions(plan);
  std::vector<std::int64_t> next(plan.ops.size(), static_cast<std::int64_t>(plan.ops.size()));
  std::vector<OpId> follower(plan.streams.size());  // the op that comes next on each stream, seen from behind
  const auto precedes = [&](std::size_t earlier, std::size_t later) {
    next[earlier] = std::min(next[earlier], positions[later] >= 0 ? positions[later] : next[later]);
  };
  // next[i] is final when the loop comes to i: all that follows i has been seen.
  for (std::size_t i = plan.ops.size(); i-- > 0;) {
    OpId& behind = follower[plan.ops[i].stream.index];
    if (behind.valid()) precedes(i, behind.index);
    behind = {static_cast<std::uint32_t>(i)};
    for (const OpId dep : plan.deps_of(plan.ops[i])) {
      EBB_ASSERT(dep.index < i);
      precedes(dep.index, i);
    }
  }
  return next;
}

std::vector<std::vector<DeviceLife>> device_lives(const Plan& plan) {
  const std::vector<std::int64_t> positions = compute_positions(plan);
  const std::vector<std::int64_t> next = next_on_compute(plan);
  std::int64_t end = 0;  // behind the last position
  for (const std::int64_t position : positions) end = std::max(end, position + 1);
  const std::int64_t last = std::max<std::int64_t>(end - 1, 0);
  std::vector<std::vector<DeviceLife>> lives(plan.buffers.size());
  std::vector<bool> alive(plan.buffers.size(), false);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    alive[b] = plan.buffers[b].memory == Memory::device && plan.buffers[b].initial;
    if (alive[b]) lives[b].push_back({0, last});
  }
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.kind != OpKind::allocate && op.kind != OpKind::release) continue;
    if (plan.buffers[op.buffer.index].memory != Memory::device) continue;
    check_stream(plan, i);
    EBB_ASSERT(alive[op.buffer.index] == (op.kind == OpKind::release));
    alive[op.buffer.index] = op.kind == OpKind::allocate;
    std::vector<DeviceLife>& of_buffer = lives[op.buffer.index];
    if (op.kind == OpKind::allocate) {
      of_buffer.push_back({positions[i], last});
    } else {
      const std::int64_t free_from = op.after.valid() ? std::min(next[op.after.index], end) : 0;
      of_buffer.back().last = std::max(positions[i], free_from - 1);
    }
  }
  return lives;
}

}  // namespace ebb::replay
