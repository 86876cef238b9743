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

/// InputError, IoError. `shown`: what messages call it, where the name would tell the user nothing.
PlanFile read_plan_file(const std::string& name, const std::string& shown = "");

}  // namespace ebb::replay
