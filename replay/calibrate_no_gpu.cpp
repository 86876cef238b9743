// measure() of a build without CUDA.
#include "replay/calibrate_measure.hpp"
#include "replay/execute.hpp"

namespace ebb::replay {

CalibrationData measure(const MeasureOptions&) {
  throw CudaError(
      "this ebb-replay was built without CUDA and cannot measure; build it where nvcc is, or fit a file of "
      "measurements with --from");
}

}  // namespace ebb::replay
