#include "planner/reserved.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/errors.hpp"
#include "models/memory/caching_allocator.hpp"

namespace ebb {

namespace {

constexpr int kMostSteps = 6;

class Replay {
 public:
  Replay(std::uint32_t tensors, const memory::CachingAllocatorOptions& options)
      : allocator_(options), blocks_(tensors) {}

  const memory::CachingAllocator& allocator() const { return allocator_; }

  /// The highest allocated bytes on the way.
  Bytes run(std::span<const AllocationEvent> events) {
    Bytes peak = allocator_.allocated();
    for (const AllocationEvent& event : events) {
      memory::CachingAllocator::Block& block = blocks_[event.tensor];
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
  memory::CachingAllocator allocator_;
  std::vector<memory::CachingAllocator::Block> blocks_;
};

}  // namespace

namespace {

/// Repeats `step` until reserved memory does not change any more. The highest allocated bytes of the last one.
Bytes settle(Replay& run, std::span<const AllocationEvent> step) {
  Bytes peak{0};
  for (int repeat = 1; repeat < kMostSteps; ++repeat) {
    const Bytes before = run.allocator().reserved();
    peak = run.run(step);
    if (repeat > 1 && run.allocator().reserved() == before) break;
  }
  return peak;
}

}  // namespace

PredictedMemory replay(const AllocationTrace& trace, Bytes capacity, const ReservedOptions& options) {
  Replay run(trace.tensors, {.capacity = capacity, .expandable_segments = options.expandable_segments});
  const memory::CachingAllocator& allocator = run.allocator();
  PredictedMemory memory;
  bool settled = false;
  for (const TracePart& part : trace.parts) {
    if (part.phase == Phase::step && !std::exchange(settled, true)) {
      memory.peak_allocated = settle(run, part.events);
      memory.reserved = allocator.reserved();
      memory.allocated = allocator.allocated();
      continue;
    }
    const Bytes peak = run.run(part.events);
    if (part.phase == Phase::init) {
      memory.init_peak = peak;
      memory.init_allocated = allocator.allocated();
    } else if (part.phase == Phase::load) {
      memory.load_peak = peak;
      memory.load_reserved = allocator.reserved();
    } else if (part.phase == Phase::first_step) {
      memory.first_peak = peak;
      memory.first_reserved = allocator.reserved();
    } else if (part.phase == Phase::save) {
      memory.save_peak = peak;
    }
  }
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
