// Plans written op by op, without the builder's help, and plans with one thing changed: for tests of verification.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan_builder.hpp"

namespace ebb::test {

/// `plan` without the dependency at `position` of Plan::deps.
inline Plan without_dep(const Plan& plan, std::size_t position) {
  Plan mutant = plan;
  mutant.deps.erase(mutant.deps.begin() + static_cast<std::ptrdiff_t>(position));
  for (Op& op : mutant.ops) {
    if (op.deps_begin > position) {
      --op.deps_begin;
    } else if (position < op.deps_begin + op.deps_count) {
      --op.deps_count;
    }
  }
  return mutant;
}

/// `plan` in which `op` also waits for `on`.
inline Plan with_dep(const Plan& plan, OpId op, OpId on) {
  Plan mutant = plan;
  const Op& where = plan.ops[op.index];
  const std::uint32_t position = where.deps_begin + where.deps_count;
  mutant.deps.insert(mutant.deps.begin() + position, on);
  for (std::uint32_t i = 0; i < mutant.ops.size(); ++i) {
    if (i != op.index && mutant.ops[i].deps_begin >= position) ++mutant.ops[i].deps_begin;
  }
  ++mutant.ops[op.index].deps_count;
  return mutant;
}

/// `plan` with its ops in the order of `order` (old indices); a dependency on an op that is then not earlier is
/// dropped.
inline Plan reordered(const Plan& plan, const std::vector<std::uint32_t>& order) {
  Plan result = plan;
  result.ops.clear();
  result.deps.clear();
  std::vector<std::uint32_t> place(plan.ops.size(), kNoChunk);
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    const Op& old = plan.ops[order[i]];
    Op op = old;
    op.deps_begin = static_cast<std::uint32_t>(result.deps.size());
    for (const OpId dep : plan.deps_of(old)) {
      if (place[dep.index] < i) result.deps.push_back({place[dep.index]});
    }
    op.deps_count = static_cast<std::uint32_t>(result.deps.size()) - op.deps_begin;
    if (op.after.valid()) op.after = {place[op.after.index]};
    result.ops.push_back(op);
  }
  return result;
}

/// `plan` in which op `from` stands at place `to`.
inline Plan with_moved(const Plan& plan, std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    if (i != from) order.push_back(i);
  }
  order.insert(order.begin() + to, from);
  return reordered(plan, order);
}

/// `plan` without op `gone`, which no op names in `after`.
inline Plan without_op(const Plan& plan, std::uint32_t gone) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    if (i != gone) order.push_back(i);
  }
  return reordered(plan, order);
}

/// A plan by hand, without the builder's help.
class ByHand {
 public:
  ByHand() {
    plan.streams = {{"host", StreamKind::host},
                    {"compute", StreamKind::compute},
                    {"h2d", StreamKind::h2d},
                    {"d2h", StreamKind::d2h}};
  }
  BufferId buffer(bool initial = false) {
    plan.buffers.push_back({"b", Memory::device, {1024}, initial});
    return {static_cast<std::uint32_t>(plan.buffers.size() - 1)};
  }
  OpId add(Op op, std::vector<OpId> deps = {}) {
    op.deps_begin = static_cast<std::uint32_t>(plan.deps.size());
    op.deps_count = static_cast<std::uint32_t>(deps.size());
    plan.deps.insert(plan.deps.end(), deps.begin(), deps.end());
    plan.ops.push_back(op);
    return {static_cast<std::uint32_t>(plan.ops.size() - 1)};
  }
  OpId allocate(BufferId b, std::vector<OpId> deps = {}) {
    return add({.kind = OpKind::allocate, .phase = phase, .stream = kComputeStream, .buffer = b}, std::move(deps));
  }
  OpId release(BufferId b, std::vector<OpId> deps = {}, OpId after = OpId::none()) {
    return add({.kind = OpKind::release, .phase = phase, .stream = kComputeStream, .buffer = b, .after = after},
               std::move(deps));
  }
  OpId in(BufferId b, ElementRange range, std::vector<OpId> deps = {}, std::uint8_t states = kAllState) {
    return add({.kind = OpKind::copy_h2d, .states = states, .stream = kH2d, .buffer = b, .range = range},
               std::move(deps));
  }
  OpId out(BufferId b, ElementRange range, std::vector<OpId> deps = {}, std::uint8_t states = kAllState) {
    return add({.kind = OpKind::copy_d2h, .states = states, .stream = kD2h, .buffer = b, .range = range},
               std::move(deps));
  }
  OpId adam(BufferId b, ElementRange range, std::vector<OpId> deps = {}) {
    return add({.kind = OpKind::kernel,
                .work = Work::adam,
                .states = kAllState | kGrads,
                .stream = kComputeStream,
                .buffer = b,
                .range = range},
               std::move(deps));
  }
  Plan plan;
  Phase phase = Phase::forward;  // of allocations and releases to come
};

}  // namespace ebb::test
