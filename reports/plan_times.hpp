// What `ebb simulate --plan` reports: step and memory of each rank of a plan file on one cluster. Fields are named like
// the keys of the JSON document.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/units.hpp"
#include "reports/style.hpp"

namespace ebb::reports {

struct RankTimes {
  std::int64_t rank = 0;
  Seconds step{0};
  Seconds optimizer_step{0};
  Bytes live_peak{0};
  Bytes pinned{0};
  Bytes pageable{0};
};

struct PlanTimes {
  std::string job;
  std::string plan_file;
  std::string cluster;
  std::string ebb_version;
  std::vector<RankTimes> ranks;
};

std::string to_text(const PlanTimes& report, const Style& style);
std::string to_json(const PlanTimes& report);

}  // namespace ebb::reports
