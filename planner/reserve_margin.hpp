// How much torch's caching allocator holds ("reserved") at most, from what is live. A bound with measured margins, not
// a replay of the allocator: blocks of different sizes and streams leave gaps, and those depend on the order of calls.
//
// Measured on one H200 (torch 2.11, 1,816,758,272 parameters; MiB: highest live bytes -> reserved):
//   resident            40,877 -> 41,352 to 41,438       full-reload        31,780 -> 33,184 to 33,578
//   chunked 1e8, 4e8    20,080 -> 21,012                 chunked 1e9        21,947 -> 24,628
//   windowed 64, 512    20,080 -> 27,586 to 27,588       windowed 0         38,314 -> 52,806
//   cpu-adam            20,080 -> 20,608
// What they say: forward and backward cost 5 % more than is live. Whatever the step allocates on top of what is always
// there leaves gaps of up to a quarter of it. Under `windowed` the pools do not share: masters are still on their way
// out when forward allocates, and the staging slots never fit into the holes that activations leave.
#pragma once

#include <cstddef>
#include <vector>

#include "models/plan.hpp"
#include "models/timeline.hpp"

namespace ebb {

/// Highest live bytes of one rank, apart for the uses that do not share blocks.
struct DeviceUse {
  Bytes always{0};            // exists before the step and after it
  Bytes leaving{0};           // exists before the step and leaves while forward runs: windowed's masters
  Bytes forward_backward{0};  // highest allocated bytes up to backward; what is on its way out counts in `leaving`
  Bytes step{0};              // highest held bytes from gradient finalization on
  Bytes released{0};          // exists before the step and is free before forward: full-reload's state, fp32 gradients
};

/// From a simulated plan.
DeviceUse device_use(const Plan& plan, const StepSummary& summary);

/// Whether phases[index] belongs to the part from gradient finalization on. (Gather may stand at either end.)
bool in_step_window(const std::vector<PhaseSummary>& phases, std::size_t index);

/// Upper bound of the reserved bytes. Monotone in every member of `use`, so that lower bounds of the members give a
/// lower bound of the result.
Bytes reserved_bound(Policy policy, const DeviceUse& use);

/// What the allocator may hold at most where `peak` is alive for a moment outside the step: whole shards side by side
/// leave gaps like activations, not like chunks that come and go.
Bytes bound_of_moment(Bytes peak);

}  // namespace ebb
