// The phases of a job's life as plain data, for tables and JSON: the planner fills them in (planner/life.hpp says what
// the figures are).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/units.hpp"

namespace ebb::reports {

struct NamedBytes {
  std::string name;
  Bytes bytes{0};
};

/// What is alive at a peak, and how it comes about.
struct PeakTerm {
  std::string name;
  Bytes bytes{0};
  std::string origin;
};

struct Phase {
  std::string name;
  std::string variant;
  bool later = false;    // a resume that the job does not begin with
  bool in_step = false;  // one of those that make up a steady step
  std::int64_t rank = 0;
  Seconds duration{0};
  Seconds exposed{0};
  Bytes stored{0};
  bool storage_known = true;
  Bytes device_peak{0};
  Bytes device_reserved_likely{0};
  Bytes device_reserved{0};  // what the decision goes by
  Bytes device_upper{0};     // device_peak and all of `uncertainty`
  Bytes allocated_after{0};
  Bytes reserved_after{0};
  std::vector<NamedBytes> uncertainty;
  std::vector<PeakTerm> terms;  // they add up to device_peak
  Bytes host_pinned{0};         // of one rank
  Bytes host_pageable{0};
  Bytes host_pinned_per_host{0};
  Bytes host_pageable_per_host{0};
  std::vector<Bytes> host_pinned_per_node;
};

/// Live bytes over a steady step.
struct CurvePoint {
  Seconds at{0};
  Bytes bytes{0};
};
struct Curve {
  std::int64_t rank = 0;
  std::int64_t micro_batches = 0;  // that it shows
  std::int64_t of_micro_batches = 0;
  std::vector<CurvePoint> points;
};

}  // namespace ebb::reports
