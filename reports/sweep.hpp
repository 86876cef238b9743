// What `ebb sweep` reports: one answer for every combination of values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/answer.hpp"

namespace ebb::reports {

struct SweepRow {
  std::vector<std::string> values;     // of SweepReport::keys
  std::optional<Candidate> candidate;  // recommended, or what needs least; none: no valid job
  bool fits = false;
  std::string obstacle;
};

struct SweepReport {
  std::string job;
  std::string ebb_version;
  std::vector<std::string> keys;
  std::vector<SweepRow> rows;
};

}  // namespace ebb::reports
