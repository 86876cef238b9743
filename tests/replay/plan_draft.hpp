// A plan that is written op by op, for tests of what plans' storage takes and when.
#pragma once

#include <cstdint>
#include <vector>

#include "models/plan.hpp"

namespace ebb::test {

struct PlanDraft {
  static constexpr StreamId kHost{0};
  static constexpr StreamId kCompute{1};
  static constexpr StreamId kH2d{2};
  static constexpr StreamId kD2h{3};

  Plan plan;

  explicit PlanDraft(LifePart part = LifePart::step) {
    plan.part = part;
    plan.streams = {{"host", StreamKind::host},
                    {"compute", StreamKind::compute},
                    {"h2d", StreamKind::h2d},
                    {"d2h", StreamKind::d2h}};
  }
  BufferId buffer(const char* name, std::int64_t bytes, bool initial = false, bool packed = false) {
    Buffer made;
    made.name = name;
    made.bytes = {bytes};
    made.initial = initial;
    made.packed = packed;
    plan.buffers.push_back(made);
    return {static_cast<std::uint32_t>(plan.buffers.size() - 1)};
  }
  OpId op(OpKind kind, StreamId stream, BufferId on = {}, const std::vector<OpId>& deps = {}, OpId after = {}) {
    Op made;
    made.kind = kind;
    made.stream = stream;
    made.buffer = on;
    made.after = after;
    made.deps_begin = static_cast<std::uint32_t>(plan.deps.size());
    made.deps_count = static_cast<std::uint32_t>(deps.size());
    plan.deps.insert(plan.deps.end(), deps.begin(), deps.end());
    plan.ops.push_back(made);
    return {static_cast<std::uint32_t>(plan.ops.size() - 1)};
  }
  OpId allocate(BufferId b) { return op(OpKind::allocate, kCompute, b); }
  OpId release(BufferId b, OpId after = {}) { return op(OpKind::release, kCompute, b, {}, after); }
};

}  // namespace ebb::test
