#include "replay/graph_stretch.hpp"

#include <fmt/format.h>

namespace ebb::replay {

namespace {

bool is_work(const Op& op) {
  return op.kind == OpKind::copy_h2d || op.kind == OpKind::copy_d2h || op.kind == OpKind::kernel;
}

}  // namespace

GraphStretch graph_stretch(const Plan& plan) {
  GraphStretch stretch;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].phase != Phase::step || !is_work(plan.ops[i])) continue;
    if (end == 0) begin = i;
    end = i + 1;
  }
  if (end == 0) {
    stretch.why_not = "the plan has no optimizer step";
    return stretch;
  }
  for (std::uint32_t i = begin; i < end; ++i) {
    if (is_work(plan.ops[i]) && plan.ops[i].phase == Phase::step) continue;
    stretch.why_not = fmt::format("op {} ({}) comes between the copies and kernels of the optimizer step", i,
                                  name_of(plan.ops[i].kind));
    return stretch;
  }
  stretch.first = begin;
  stretch.last = end;
  return stretch;
}

}  // namespace ebb::replay
