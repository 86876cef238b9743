// execute(): a Plan on real GPUs. Streams and events from the plan, real bytes, real kernels, one host thread a GPU.
//
// A run: check what the devices and the host have, allocate, initialise, then `warmups` + `repeats` steps. Each timed
// step starts on an idle device, behind a gate that holds every stream until the host is ahead, at the same time on all
// ranks; times come from events, relative to one base event a device. Built without CUDA it throws CudaError.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/timeline_file.hpp"
#include "replay/program.hpp"
#include "replay/reference.hpp"
#include "replay/training.hpp"

namespace ebb::replay {

/// CUDA, its driver or a device: what() names the call, its error and, where one is known, the cure.
class CudaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
class NcclError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ExecuteOptions {
  TrainingOptions training{.adam = {}, .digests = false};
  int warmups = 3;  // the first loads kernels, the others teach stand-ins how long they last
  int repeats = 5;
  std::vector<int> devices;        // by plan; empty: 0, 1, ...
  bool alone = false;              // collectives whose other ranks are not here are left out, and said so
  bool graph = false;              // capture what lies between host waits into CUDA graphs, where the plan allows it
  bool compute = true;             // GEMM stand-ins for forward and backward; off: only their gradients
  bool framework_time = true;      // host work takes the time that the plan's cluster gives it
  bool gate = true;                // hold all streams at the start of a step; off: tools that run one kernel at a time
  bool link = true;                // afterwards: what the link carries both ways in copies of the plan's slots
  bool poison = false;             // fill device memory with poison at every allocation
  std::optional<StreamKind> slow;  // delay every op of this stream: makes a missing dependency show
  Bytes keep_free = {std::int64_t{1} << 30};  // device memory that must stay unused
};

struct RankRun {
  RankTimeline timeline;
  RankNumbers numbers;  // every step, warm-ups included
};
struct RunResult {
  std::vector<RankRun> ranks;  // of all processes in the first, of its own in the others
  bool first_process = true;   // the one that reports
  std::vector<std::pair<std::string, std::string>> provenance;  // device, driver, CUDA, NCCL, host
  std::vector<std::string> remarks;                             // what was left out or looks wrong
};

/// InputError when plans and devices do not go together, CudaError, NcclError, IoError (pinning). Nothing stays
/// allocated whatever happens.
RunResult execute(std::span<const Program> programs, const ExecuteOptions& options);

}  // namespace ebb::replay
