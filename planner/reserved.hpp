// Reserved device memory as a prediction: an AllocationTrace replayed through a model of torch's caching allocator.
// Beside it stands an upper bound with measured margins (reserve_margin.hpp), which decides what fits: what the
// allocator keeps depends on the order of calls, and under `windowed` on how fast copies end.
#pragma once

#include <optional>

#include "planner/allocation_trace.hpp"

namespace ebb {

/// A device that no job fills: 1 PiB.
inline constexpr Bytes kUnlimited{std::int64_t{1} << 50};

struct ReservedOptions {
  bool expandable_segments = false;  // PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
};

/// What torch would report.
struct PredictedMemory {
  Bytes init_allocated{0};   // when training starts
  Bytes init_peak{0};        // highest allocated until then
  Bytes allocated{0};        // between steps
  Bytes peak_allocated{0};   // highest in a later step
  Bytes reserved{0};         // after a step, once steps do not change it any more
  Bytes first_peak{0};       // highest allocated in the first step
  Bytes first_reserved{0};   // after it
  Bytes load_peak{0};        // highest allocated while a checkpoint is loaded; 0: the trace has no load
  Bytes load_reserved{0};    // after it
  Bytes save_peak{0};        // highest while one is saved; 0: the trace has no save, or a save takes nothing
  Bytes peak_reserved{0};    // highest at any time
  std::int64_t retries = 0;  // how often the device was full and the cache was given back
};

/// Steps until one leaves reserved memory unchanged, at most six. On a device of the job's memory less the context;
/// when the trace does not fit even there, on one without a limit (all 0 beyond 1 PiB). Precondition: as for lower().
PredictedMemory predicted_memory(const RankModel& rank, const Candidate& candidate,
                                 const ReservedOptions& options = {});
/// The same for any trace. InputError when it does not fit into `capacity`.
PredictedMemory replay(const AllocationTrace& trace, Bytes capacity, const ReservedOptions& options = {});

/// The same; nullopt when the process does not get through with no more than `capacity` from the driver. Less than what
/// it would reserve can do: torch returns what it caches before it gives up. Fragments cannot be returned, so the live
/// peak is not enough.
std::optional<PredictedMemory> replay_within(const AllocationTrace& trace, Bytes capacity,
                                             const ReservedOptions& options = {});

}  // namespace ebb
