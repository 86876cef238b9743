#include "replay/calibrate_measure.hpp"

#include "replay/calibrate_bench.hpp"

namespace ebb::replay {

CalibrationData measure(const MeasureOptions& options) {
  CalibrationData data;
  Bench bench(options, data.setting);
  measure_pinning(bench, data);
  // A host that others use too is now faster, now slower, for seconds: copies are measured in rounds spread over the
  // whole calibration, and the fits take medians.
  measure_copies(bench, 0, data);
  measure_calls(bench, data);
  measure_copies(bench, 1, data);
  measure_kernels(bench, data);
  measure_copies(bench, 2, data);
  measure_collectives(bench, data);
  return data;
}

}  // namespace ebb::replay
