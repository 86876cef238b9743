// What `ebb fit` reports: how far a job can go before nothing fits, and with how little it would do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/answer.hpp"

namespace ebb::reports {

struct FitPoint {
  std::int64_t value = 0;
  std::optional<Candidate> candidate;  // recommended there; where nothing fits, what needs least
  std::string obstacle;                // why nothing fits
  std::string decides;                 // ... in a word: rule, policy, device-budget, host-budget, numa; "": it fits
};

struct FitLimit {
  bool offload = true;  // every schedule; false: resident state only
  std::optional<FitPoint> fits;
  std::optional<FitPoint> breaks;
};

struct FitReport {
  Header header;
  std::string goal;       // sequence, micro-batch, layers, gpus or host-memory
  bool largest = true;    // the most that fits, not the least
  std::int64_t own = 0;   // the job's own value
  std::int64_t step = 0;  // between values; 0: they have no common distance
  std::vector<FitLimit> limits;
  std::vector<std::string> notes;
  std::string next_command;
};

}  // namespace ebb::reports
