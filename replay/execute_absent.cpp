// execute() and execute_life() of a build without CUDA.
#include "replay/execute.hpp"
#include "replay/life.hpp"

namespace ebb::replay {

namespace {

[[noreturn]] void absent() { throw CudaError("this build has no CUDA; build where nvcc is, or run with --device cpu"); }

}  // namespace

RunResult execute(std::span<const Program>, const ExecuteOptions&) { absent(); }

LifeRun execute_life(std::span<const LifeRank>, const LifeScript&, const ExecuteOptions&) { absent(); }

}  // namespace ebb::replay
