// Preflight: does this machine have what the plans need? Asked before the first allocation.
//
// Facts are read first (read_machine, with CUDA), judged by pure functions. InputError (exit 2) where a plan asks for
// more than the machine has, CudaError (exit 3) where CUDA does not work here.
// Not here: NCCL (nccl.hpp says itself when it is missing).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/gpu_architecture.hpp"
#include "models/host_limits.hpp"
#include "models/units.hpp"

namespace ebb::replay {

struct Gpu {
  std::string name;
  ComputeCapability capability;
  Bytes total{0};
  Bytes free{0};
};

/// CUDA versions as the runtime counts them: 1000 * major + 10 * minor.
struct Machine {
  int driver = 0;  // the newest CUDA that the driver knows; 0: no driver
  int runtime = 0;
  std::string problem;  // what the runtime said when it was asked for devices; empty: nothing
  std::vector<Gpu> devices;
  HostLimits host;
};

/// What code this build has: CMake's words ("90-real", "100-virtual", "80": both), between commas or semicolons.
struct CompiledFor {
  std::vector<ComputeCapability> code;  // runs on the same major from its minor on
  std::vector<ComputeCapability> ptx;   // is translated for the same and anything newer
};
CompiledFor compiled_for(std::string_view cmake_architectures);
bool runs_on(const CompiledFor& compiled, ComputeCapability device);

/// Of one rank. `device`: CUDA's number.
struct RankNeeds {
  std::int64_t rank = 0;
  int device = 0;
  Bytes buffers{0};  // device_bytes_needed()
  Bytes instruments{0};
  Bytes pinned{0};
  Bytes pageable{0};
};
struct Needs {
  std::vector<RankNeeds> ranks;  // of this host, in this process or in others
  Bytes keep_free{0};
  std::string file;  // of the plans, for messages
};

/// CUDA works here and every needed device can run this build. CudaError, or InputError for too few devices.
void check_devices(const Needs& needs, const Machine& machine, const CompiledFor& compiled);
/// Device and host memory suffice. InputError. Returns what may turn out too small, one clause each.
std::vector<std::string> check_memory(const Needs& needs, const Machine& machine);

/// Asks driver, devices and host; what cannot be asked makes `problem`. Creates contexts on `devices`; all of
/// them when empty (the others stay in the list without free bytes). In builds with CUDA.
Machine read_machine(std::span<const int> devices);
/// Of this build.
CompiledFor compiled_for();

}  // namespace ebb::replay
