// Ready actions: a Program's runs and transfers in the tables that launchers and copies take, made once.
//
// Addresses of device buffers change from step to step (a caching allocator gives them), so tables hold offsets; host
// addresses stay. Not here: CUDA, streams.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "kernels/adamw.hpp"
#include "kernels/runs.hpp"
#include "kernels/types.hpp"
#include "replay/kernel_type.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

/// Where runs of one state lie, for digests.
struct DigestRuns {
  StateBits state = kMaster;
  kernels::Type type = kernels::Type::fp32;
  std::vector<kernels::Run> runs;
};

struct ReadyAdam {
  bool foreach = false;
  BufferId moments, masters, grads, params, scratch;
  kernels::AdamwArrays types;  // without addresses
  std::vector<kernels::AdamwRun> runs;
  std::array<DigestRuns, 3> digests;  // exp_avg and exp_avg_sq in `moments`, master in `masters`
};
struct ReadyHostAdam {
  std::vector<kernels::AdamwRun> runs;
  std::array<DigestRuns, 3> digests;
};
struct ReadyCast {
  BufferId from, to;
  kernels::Type from_type = kernels::Type::fp32;
  kernels::Type to_type = kernels::Type::bf16;
  std::vector<kernels::CastRun> runs;
};
struct ReadyNorm {
  BufferId grads, norm;
  kernels::Type type = kernels::Type::fp32;
  std::vector<kernels::Run> runs;
};
struct ReadyClip : ReadyNorm {};

using Ready = std::variant<Nothing, Copy, ReadyAdam, ReadyHostAdam, ReadyCast, ReadyNorm, ReadyClip, ZeroGrads,
                           BucketCollective, NormCollective, Stand, HostWork, Zero, HostMasters, Store, Fetch,
                           FindLargest, LargestCollective, Quantize, Dequantize, MakeColumns>;

/// By op id. `plan` is the program's.
std::vector<Ready> ready_actions(const Program& program);

/// Launches, copies or calls that the action enqueues, events apart; stand-ins count their own (0 here).
std::uint32_t commands_of(const Ready& action);

}  // namespace ebb::replay
