#include "planner/reserved.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "models/errors.hpp"
#include "sim/caching_allocator.hpp"

namespace ebb {

namespace {

constexpr int kMostSteps = 6;

class Replay {
 public:
  Replay(std::uint32_t tensors, const sim::CachingAllocatorOptions& options) : allocator_(options), blocks_(tensors) {}

  const sim::CachingAllocator& allocator() const { return allocator_; }

  /// The highest allocated bytes on the way.
  Bytes run(std::span<const AllocationEvent> events) {
    Bytes peak = allocator_.allocated();
    for (const AllocationEvent& event : events) {
      sim::CachingAllocator::Block& block = blocks_[event.tensor];
      switch (event.kind) {
        case AllocationEvent::Kind::allocate:
          block = allocator_.allocate(event.bytes, kCurrent);
          peak = std::max(peak, allocator_.allocated());
          break;
        case AllocationEvent::Kind::release:
          allocator_.free(block);
          break;
        case AllocationEvent::Kind::leave:
          allocator_.free(block, std::span(&event.tensor, 1));
          break;
        case AllocationEvent::Kind::end:
          allocator_.end(event.tensor);
          break;
      }
    }
    return peak;
  }

 private:
  static constexpr StreamId kCurrent{0};
  sim::CachingAllocator allocator_;
  std::vector<sim::CachingAllocator::Block> blocks_;
};

}  // namespace

PredictedMemory replay(const AllocationTrace& trace, Bytes capacity, const ReservedOptions& options) {
  Replay run(trace.tensors, {.capacity = capacity, .expandable_segments = options.expandable_segments});
  const sim::CachingAllocator& allocator = run.allocator();
  PredictedMemory memory;
  memory.init_peak = run.run(trace.init);
  memory.init_allocated = allocator.allocated();
  memory.first_peak = run.run(trace.first_step);
  memory.first_reserved = memory.reserved = allocator.reserved();
  for (int step = 1; step < kMostSteps; ++step) {
    const Bytes before = memory.reserved;
    memory.peak_allocated = run.run(trace.later_step);
    memory.reserved = allocator.reserved();
    if (step > 1 && memory.reserved == before) break;
  }
  memory.allocated = allocator.allocated();
  memory.peak_reserved = allocator.peak_reserved();
  memory.retries = allocator.retries();
  return memory;
}

std::optional<PredictedMemory> replay_within(const AllocationTrace& trace, Bytes capacity,
                                             const ReservedOptions& options) {
  try {
    return replay(trace, capacity, options);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

PredictedMemory predicted_memory(const RankModel& rank, const Candidate& candidate, const ReservedOptions& options) {
  const AllocationTrace trace = allocation_trace(rank, candidate);
  const Gpu& gpu = rank.job->cluster.gpu;
  const Bytes capacity = gpu.memory.value - gpu.context.value;
  const PredictedMemory unlimited = replay_within(trace, kUnlimited, options).value_or(PredictedMemory{});
  if (unlimited.peak_reserved <= capacity) return unlimited;
  return replay_within(trace, capacity, options).value_or(unlimited);
}

}  // namespace ebb
