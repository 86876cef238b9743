// execute() of a build without CUDA.
#include "replay/execute.hpp"

namespace ebb::replay {

RunResult execute(std::span<const Program>, const ExecuteOptions&) {
  throw CudaError("this build has no CUDA; build where nvcc is, or run with --device cpu");
}

}  // namespace ebb::replay
