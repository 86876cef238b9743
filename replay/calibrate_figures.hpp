// A calibrated Cluster: what was measured replaces a base cluster's figures, each with its residual and its source;
// what cannot be measured here keeps the base's value and source.
//
// Kept: calls.chunk and calls.tensor_scan (a framework's), the matrix rates and compute_efficiency (replay's stand-ins
// are timed as they are), network, storage, sockets. Not here: measuring, files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/cluster.hpp"
#include "replay/calibrate_data.hpp"
#include "replay/calibrate_fit.hpp"

namespace ebb::replay {

/// One line of the report.
struct CalibratedFigure {
  std::string name;   // "host_link.h2d"
  std::string value;  // for people
  std::string base;   // the base cluster's, for comparison
  std::optional<Residual> residual;
};

struct Calibration {
  Cluster cluster;
  std::vector<CalibratedFigure> figures;  // that were measured
  std::vector<std::string> remarks;       // what does not fit, what was seen beside it
};

/// InputError when copies both ways, alone and together, are missing: without them nothing is calibrated.
Calibration calibrated(const CalibrationData& data, const Cluster& base, const std::string& name);

/// To four significant digits: more would be noise.
double rounded(double value);

}  // namespace ebb::replay
