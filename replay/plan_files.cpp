#include "replay/plan_files.hpp"

#include <fmt/format.h>

#include "models/errors.hpp"
#include "models/plan_json.hpp"
#include "models/text_file.hpp"
#include "replay/talk.hpp"

namespace ebb::replay {

namespace {

/// Eight ranks of a million ops each stay below it.
constexpr std::int64_t kMostPlanBytes = std::int64_t{4} << 30;

/// A step can run alone and again and again; the other parts of a life follow each other.
void check_steps(const std::vector<Plan>& plans, const std::string& file) {
  for (const Plan& plan : plans) {
    if (plan.part == LifePart::step) continue;
    throw InputError(
        {.file = file},
        fmt::format("it has the plans of a whole life (here of {}), and steps alone are wanted", name_of(plan.part)),
        "run it with ebb-replay train, compare two such files with ebb-replay equivalence --life, or write "
        "the step alone: ebb simulate without --life");
  }
}

}  // namespace

PlanFile read_plan_file(const std::string& name, const std::string& shown) {
  PlanFile file;
  file.name = shown.empty() ? name : shown;
  const Activity activity(fmt::format("reading {}", file.name));
  const std::string text = read_text_file(name, kMostPlanBytes, "write one with ebb simulate JOB --policy P -o FILE");
  file.plans = std::make_unique<const std::vector<Plan>>(plans_from_json(text, file.name));
  check_steps(*file.plans, file.name);
  file.programs.reserve(file.plans->size());
  for (const Plan& plan : *file.plans) file.programs.push_back(compile(plan, file.name));
  return file;
}

}  // namespace ebb::replay
