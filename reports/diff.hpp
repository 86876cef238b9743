// What `ebb diff` reports, as plain data: a prediction beside a run of the same plan. Fields are named like the keys of
// the JSON document. Writers: diff_text.hpp, diff_json.hpp; who fills it: planner/diff.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/units.hpp"

namespace ebb::reports {

/// A duration that every repeat has.
struct DiffTime {
  Seconds predicted{0};
  Seconds measured{0};  // median of the repeats
  Seconds least{0};
  Seconds most{0};

  Seconds difference() const { return measured - predicted; }
  /// Of the prediction; a prediction of nothing is met by nothing alone.
  double relative() const {
    if (predicted.value > 0) return difference().value / predicted.value;
    return measured.value > 0 ? 1 : 0;
  }
};

struct DiffPhase {
  std::string name;
  Seconds predicted{0};
  Seconds measured{0};
};

/// Ops of one kind. Busy: at least one of them runs. Exposed: the step is charged to them (planner/diff_exposure.hpp);
/// exposed seconds of all classes add up to the step.
struct DiffClass {
  std::string name;
  std::int64_t ops = 0;
  Bytes bytes{0};
  Seconds busy_predicted{0};
  Seconds busy_measured{0};
  std::optional<BytesPerSecond> rate_predicted;
  std::optional<BytesPerSecond> rate_measured;
  Seconds exposed_predicted{0};
  Seconds exposed_measured{0};

  Seconds difference() const { return exposed_measured - exposed_predicted; }
};

struct DiffBytes {
  std::string name;
  Bytes predicted{0};
  Bytes measured{0};
};

struct DiffMemory {
  Bytes live_predicted{0};
  Bytes live_measured{0};
  std::vector<DiffBytes> live_by_phase;
  std::vector<DiffBytes> host;                          // pinned, pageable
  std::vector<std::pair<std::string, Bytes>> of_run;    // torch's allocator, the driver, instruments: where known
  std::vector<std::pair<std::string, Bytes>> forecast;  // the same where the prediction has them

  bool live_equal() const {
    if (live_predicted != live_measured) return false;
    for (const DiffBytes& phase : live_by_phase)
      if (phase.predicted != phase.measured) return false;
    return true;
  }
};

struct DiffRank {
  std::int64_t rank = 0;
  std::size_t repeats = 0;
  DiffTime step;
  DiffTime update;  // the optimizer step
  std::vector<DiffPhase> phases;
  std::vector<DiffClass> classes;
  DiffMemory memory;
  std::string verdict;  // which assumption is off, in one sentence
};

struct DiffReport {
  std::string predicted_file;
  std::string measured_file;
  std::string measured_source;  // "measured", or "predicted" where two predictions are compared
  std::string job;
  std::string candidate;
  std::string cluster;
  std::vector<std::pair<std::string, std::string>> provenance;
  double fail_above = 0.05;
  std::vector<DiffRank> ranks;
  std::size_t slowest = 0;  // of ranks; the others stand in the JSON
  std::vector<std::string> failures;
  std::string ebb_version;

  const DiffRank& decides() const { return ranks[slowest]; }
};

}  // namespace ebb::reports
