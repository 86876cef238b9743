// LifeFile: the plans of all parts of a job's life, of all ranks of one host, and their programs, kept together because
// programs point to plans.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "replay/life.hpp"

namespace ebb::replay {

struct LifeFile {
  std::string name;
  std::unique_ptr<const std::vector<Plan>> plans;  // ascending by (rank, part); does not move when the LifeFile does
  std::vector<LifeRank> ranks;                     // ascending
};

/// `plans` as a file would hold them. InputError where a rank lacks a part that another has, or the file the step.
LifeFile life_of(std::vector<Plan> plans, const std::string& name);
/// InputError, IoError. `shown`: what messages call it, where the name would tell the user nothing.
LifeFile read_life_file(const std::string& name, const std::string& shown = "");

/// The plan of a part, which must be there.
const Plan& plan_of(const LifeRank& rank, LifePart part);
/// Of the step, which every life has.
inline const Plan& step_of(const LifeRank& rank) { return plan_of(rank, LifePart::step); }

}  // namespace ebb::replay
