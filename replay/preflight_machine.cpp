// What CUDA says about this machine.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>

#include "replay/cuda.hpp"
#include "replay/preflight.hpp"

namespace ebb::replay {

namespace {

/// Keeps the first error. check_devices() looks at the driver's version before, which says more than its error.
void note(std::string& problem, cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();
  if (problem.empty()) problem = fmt::format("{}: {}", call, cudaGetErrorString(error));
}

Gpu ask(int device, bool memory, std::string& problem) {
  Gpu gpu;
  cudaDeviceProp properties{};
  note(problem, cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  gpu.name = properties.name;
  gpu.capability = {properties.major, properties.minor};
  gpu.total = {static_cast<std::int64_t>(properties.totalGlobalMem)};
  if (!memory) return gpu;
  std::size_t free = 0;
  std::size_t total = 0;
  note(problem, cudaSetDevice(device), "cudaSetDevice");
  note(problem, cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  gpu.free = {static_cast<std::int64_t>(free)};
  gpu.total = {static_cast<std::int64_t>(total)};
  return gpu;
}

}  // namespace

Machine read_machine(std::span<const int> devices) {
  Machine machine;
  machine.host = read_host_limits();
  note(machine.problem, cudaDriverGetVersion(&machine.driver), "cudaDriverGetVersion");
  note(machine.problem, cudaRuntimeGetVersion(&machine.runtime), "cudaRuntimeGetVersion");
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorNoDevice) {
    (void)cudaGetLastError();
  } else {
    note(machine.problem, counted, "cudaGetDeviceCount");
  }
  int current = 0;
  const bool has_current = counted == cudaSuccess && cudaGetDevice(&current) == cudaSuccess;
  for (int device = 0; counted == cudaSuccess && device < count; ++device) {
    const bool wanted = devices.empty() || std::find(devices.begin(), devices.end(), device) != devices.end();
    machine.devices.push_back(ask(device, wanted, machine.problem));
  }
  if (has_current) (void)cudaSetDevice(current);
  return machine;
}

CompiledFor compiled_for() { return compiled_for(EBB_CUDA_ARCHITECTURES); }

}  // namespace ebb::replay
