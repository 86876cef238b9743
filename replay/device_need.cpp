// What plans' buffers take of the device, without one: DeviceMemory's two backings over the plans in program order.
#include <algorithm>
#include <optional>
#include <utility>

#include "models/errors.hpp"
#include "models/memory/arena.hpp"
#include "models/memory/caching_allocator.hpp"
#include "replay/carry_over.hpp"
#include "replay/device_layout.hpp"
#include "replay/device_lives.hpp"
#include "replay/device_memory.hpp"

namespace ebb::replay {

namespace {

/// The caching allocator when no stream lags behind: a use ends with the first op of the compute stream that must come
/// after it. Less cannot do; a device with just as much gives back its cache and goes on.
class CachedPlans {
  using Block = memory::CachingAllocator::Block;

 public:
  /// The plan after what has run so far.
  void run(const Plan& plan) {
    begin(plan);
    const std::vector<std::int64_t> next = next_on_compute(plan);
    std::vector<std::vector<memory::CachingAllocator::Use>> ending(plan.ops.size() + 1);  // by compute position
    std::size_t position = 0;
    for (const Op& op : plan.ops) {
      if (plan.streams[op.stream.index].kind != StreamKind::compute) continue;
      for (const auto use : ending[position]) allocator_.end(use);
      ending[position].clear();
      ++position;
      const bool memory = op.kind == OpKind::allocate || op.kind == OpKind::release;
      if (!memory || plan.buffers[op.buffer.index].memory != Memory::device) continue;
      if (op.kind == OpKind::allocate) {
        allocate(plan, op.buffer);
      } else if (op.after.valid() && next[op.after.index] >= static_cast<std::int64_t>(position)) {
        ending[static_cast<std::size_t>(next[op.after.index])].push_back(op.after.index);
        free(op.buffer, {op.after.index});
      } else {
        free(op.buffer, {});
      }
    }
    for (const auto& uses : ending)
      for (const auto use : uses) allocator_.end(use);  // the device is idle between parts
  }
  Bytes reserved() const { return allocator_.peak_reserved(); }

 private:
  void begin(const Plan& plan) {
    std::vector<std::optional<Block>> before = std::move(blocks_);
    blocks_.assign(plan.buffers.size(), std::nullopt);
    if (last_ != nullptr) {
      std::vector<bool> alive;
      for (const auto& block : before) alive.push_back(block.has_value());
      const std::vector<BufferId> from = carry_over(*last_, alive, plan, Carry::between_parts);
      for (std::size_t b = 0; b < from.size(); ++b)
        if (from[b].valid()) blocks_[b] = before[from[b].index];
    } else {
      for (std::uint32_t b = 0; b < plan.buffers.size(); ++b)
        if (plan.buffers[b].initial && plan.buffers[b].memory == Memory::device) allocate(plan, {b});
    }
    last_ = &plan;
  }
  void allocate(const Plan& plan, BufferId b) {
    blocks_[b.index] = allocator_.allocate(std::max(plan.buffers[b.index].bytes, Bytes{1}), StreamId{0});
  }
  void free(BufferId b, const std::vector<memory::CachingAllocator::Use>& uses) {
    EBB_ASSERT(blocks_[b.index].has_value());
    allocator_.free(*std::exchange(blocks_[b.index], std::nullopt), uses);
  }

  memory::CachingAllocator allocator_;
  const Plan* last_ = nullptr;
  std::vector<std::optional<Block>> blocks_;  // by buffer: where it is alive
};

}  // namespace

DeviceBacking backing_of(std::span<const Plan* const> plans) {
  const auto packed = [](const Buffer& buffer) { return buffer.memory == Memory::device && buffer.packed; };
  const bool arena = std::any_of(plans.begin(), plans.end(), [&](const Plan* plan) {
    return std::any_of(plan->buffers.begin(), plan->buffers.end(), packed);
  });
  return arena ? DeviceBacking::arena : DeviceBacking::caching;
}

Bytes device_bytes_needed(std::span<const Plan* const> plans, std::span<const Plan* const> order) {
  if (backing_of(plans) == DeviceBacking::arena) return place_life(plans).size;
  CachedPlans cached;
  for (const Plan* plan : order) cached.run(*plan);
  return cached.reserved();
}

Bytes device_bytes_needed(const Program& program) {
  const Plan* const plan = program.plan;
  return device_bytes_needed({&plan, 1}, {&plan, 1});
}

}  // namespace ebb::replay
