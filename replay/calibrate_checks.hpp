// What a calibration measured beside its figures, against what the figures say about it: the reader sees how far to
// trust them where they were not fitted. Sentences, not numbers for anything to compute with.
#pragma once

#include <string>
#include <vector>

#include "models/cluster.hpp"
#include "replay/calibrate_data.hpp"

namespace ebb::replay {

/// Of a cluster that was calibrated from `data`.
std::vector<std::string> checks(const CalibrationData& data, const Cluster& cluster);

}  // namespace ebb::replay
