// Which buffers of a plan share bytes in its arena, and whether they may: by the planner's own Order, which knows
// nothing of how lives were found.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/op_order.hpp"
#include "models/plan.hpp"
#include "replay/device_layout.hpp"
#include "tests/catch.hpp"

namespace ebb::test {

/// One life: begun by an op or there from the start, ended by an op or never; `after` as in the plan.
struct BufferLife {
  std::size_t buffer = 0;
  std::optional<OpId> begin;
  std::optional<OpId> end;
};

inline std::vector<BufferLife> lives_of(const Plan& plan) {
  std::vector<BufferLife> lives;
  std::vector<std::optional<std::size_t>> open(plan.buffers.size());
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (!plan.buffers[b].initial || plan.buffers[b].memory != Memory::device) continue;
    open[b] = lives.size();
    lives.push_back({b, {}, {}});
  }
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.kind != OpKind::allocate && op.kind != OpKind::release) continue;
    auto& of_buffer = open[op.buffer.index];
    if (plan.buffers[op.buffer.index].memory != Memory::device) continue;
    if (op.kind == OpKind::allocate) {
      of_buffer = lives.size();
      lives.push_back({op.buffer.index, OpId{i}, {}});
    } else {
      lives[*of_buffer].end = OpId{i};
      of_buffer.reset();
    }
  }
  return lives;
}

/// Everything that touches `a` has ended before `b` begins, whatever the durations.
inline bool surely_before(const Plan& plan, const Order& order, const BufferLife& a, const BufferLife& b) {
  if (!a.end || !b.begin) return false;
  const OpId after = plan.ops[a.end->index].after;
  return order.before(*a.end, *b.begin) && (!after.valid() || order.before(after, *b.begin));
}

/// A buffer's own lives follow each other; otherwise one offset is not enough.
inline bool lives_apart(const Plan& plan, const Order& order) {
  const std::vector<BufferLife> lives = lives_of(plan);
  for (std::size_t i = 0; i < lives.size(); ++i)
    for (std::size_t j = i + 1; j < lives.size(); ++j)
      if (lives[i].buffer == lives[j].buffer && !surely_before(plan, order, lives[i], lives[j])) return false;
  return true;
}

/// Also counts the pairs that do share bytes, so that a test sees that there are some.
inline int check_no_overlap(const Plan& plan) {
  const memory::Arena arena = replay::place_buffers(plan);
  const Order order(plan);
  const std::vector<BufferLife> lives = lives_of(plan);
  int shared = 0;
  for (const BufferLife& a : lives) {
    for (const BufferLife& b : lives) {
      if (a.buffer >= b.buffer) continue;
      const Bytes a_begin = arena.offsets[a.buffer];
      const Bytes b_begin = arena.offsets[b.buffer];
      const bool in_space =
          a_begin < b_begin + plan.buffers[b.buffer].bytes && b_begin < a_begin + plan.buffers[a.buffer].bytes;
      if (!in_space) continue;
      ++shared;
      REQUIRE((surely_before(plan, order, a, b) || surely_before(plan, order, b, a)));
    }
  }
  return shared;
}

}  // namespace ebb::test
