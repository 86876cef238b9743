// What `ebb simulate --plan` reports: step and memory of each rank of a plan file on one cluster; and `ebb simulate
// --life`: the same of every part of a job's life. Fields are named like the keys of the JSON document.
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

/// One part of one rank's life.
struct PartTimes {
  std::int64_t rank = 0;
  std::string part;
  Seconds duration{0};
  Bytes live_peak{0};
  Bytes stored{0};  // written to or read from a checkpoint
};

struct LifeTimes {
  std::string job;
  std::string policy;
  std::string cluster;
  std::string ebb_version;
  bool storage_known = true;  // whether durations include the storage
  std::vector<PartTimes> parts;
};

std::string to_text(const PlanTimes& report, const Style& style);
std::string to_json(const PlanTimes& report);
std::string to_text(const LifeTimes& report, const Style& style);
std::string to_json(const LifeTimes& report);

}  // namespace ebb::reports
