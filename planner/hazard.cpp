#include "planner/hazard.hpp"

namespace ebb {

std::string_view name_of(HazardKind kind) {
  switch (kind) {
    case HazardKind::not_topological:
      return "not topological";
    case HazardKind::use_before_allocate:
      return "use before allocate";
    case HazardKind::use_after_release:
      return "use after release";
    case HazardKind::unordered_access:
      return "unordered access";
    case HazardKind::double_release:
      return "double release";
    case HazardKind::leak:
      return "leak";
    case HazardKind::issued_early:
      return "issued early";
    case HazardKind::outlives_phase:
      return "outlives its phase";
    case HazardKind::stale_read:
      return "stale read";
    case HazardKind::lost_state:
      return "lost state";
    case HazardKind::over_budget:
      return "over budget";
    case HazardKind::collective_mismatch:
      return "collective mismatch";
    case HazardKind::collective_deadlock:
      return "collective deadlock";
  }
  return "";
}

std::string describe(const Plan& plan, OpId op) {
  const Op& what = plan.ops[op.index];
  std::string text(name_of(what.kind));
  if (what.work != Work::none) text.append(" ").append(name_of(what.work));
  text.append(" ").append(std::to_string(op.index));
  if (what.chunk != kNoChunk) text.append(" (chunk ").append(std::to_string(what.chunk)).append(")");
  return text;
}

std::string describe(const Plan& plan, const Edge& missing) {
  return "; needs: " + describe(plan, missing.first) + " -> " + describe(plan, missing.second);
}

}  // namespace ebb
