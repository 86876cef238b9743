// PlanFile: the plans of one file and their programs, kept together because programs point to plans.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "replay/program.hpp"

namespace ebb::replay {

struct PlanFile {
  std::string name;
  std::unique_ptr<const std::vector<Plan>> plans;  // does not move when the PlanFile does
  std::vector<Program> programs;                   // by plan
};

/// InputError, IoError.
PlanFile read_plan_file(const std::string& name);

}  // namespace ebb::replay
