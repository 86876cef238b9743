#include "replay/plan_files.hpp"

#include "models/plan_json.hpp"
#include "models/text_file.hpp"

namespace ebb::replay {

namespace {

/// Eight ranks of a million ops each stay below it.
constexpr std::int64_t kMostPlanBytes = std::int64_t{4} << 30;

}  // namespace

PlanFile read_plan_file(const std::string& name, const std::string& shown) {
  PlanFile file;
  file.name = shown.empty() ? name : shown;
  const std::string text = read_text_file(name, kMostPlanBytes, "write one with ebb simulate JOB --policy P -o FILE");
  file.plans = std::make_unique<const std::vector<Plan>>(plans_from_json(text, file.name));
  file.programs.reserve(file.plans->size());
  for (const Plan& plan : *file.plans) file.programs.push_back(compile(plan, file.name));
  return file;
}

}  // namespace ebb::replay
