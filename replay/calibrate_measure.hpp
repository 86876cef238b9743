// Measuring: what a calibration takes from the hardware, in about a minute.
//
// How. Everything is enqueued behind a gate, so that the host's enqueueing does not show, and timed by events. The
// first run of each is not counted; medians of repeats are kept. Copies walk through more pinned memory than any cache
// holds, placed as replay places its host store; the arrays of kernels are larger than the L2 cache or walk through
// ones that are, and hold random numbers. Copies both ways are measured in the steady state of a pipeline: the way out
// follows the way in through the same memory, and only the window counts in which all streams were busy. GPUs are
// measured one after another, then all together. Not here: fits (calibrate_fit.hpp).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "replay/calibrate_data.hpp"

namespace ebb::replay {

struct MeasureOptions {
  std::vector<int> devices;  // empty: all
  double seconds = 60;       // more: more repeats
  std::string date;
  std::string command;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// CudaError, NcclError or IoError when the hardware is not there or too small; nothing stays allocated.
CalibrationData measure(const MeasureOptions& options);

}  // namespace ebb::replay
