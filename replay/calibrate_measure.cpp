#include "replay/calibrate_measure.hpp"

#include "replay/calibrate_bench.hpp"

namespace ebb::replay {

CalibrationData measure(const MeasureOptions& options) {
  CalibrationData data;
  Bench bench(options, data.setting);
  measure_pinning(bench, data);
  measure_copies(bench, data);
  measure_calls(bench, data);
  measure_kernels(bench, data);
  measure_collectives(bench, data);
  return data;
}

}  // namespace ebb::replay
