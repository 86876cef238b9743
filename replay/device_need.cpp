// What a plan's buffers take of the device, without one: DeviceMemory's two backings over the plan in program order.
#include <algorithm>

#include "models/memory/arena.hpp"
#include "models/memory/caching_allocator.hpp"
#include "replay/device_layout.hpp"
#include "replay/device_lives.hpp"
#include "replay/device_memory.hpp"

namespace ebb::replay {

namespace {

/// Reserved by the caching allocator when no stream lags behind: a use ends with the first op of the compute stream
/// that must come after it. Less cannot do; a device with just as much gives back its cache and goes on.
Bytes reserved_by_caching(const Plan& plan) {
  const std::vector<std::int64_t> next = next_on_compute(plan);
  std::vector<std::vector<memory::CachingAllocator::Use>> ending(plan.ops.size() + 1);  // by compute position
  memory::CachingAllocator allocator;
  std::vector<memory::CachingAllocator::Block> blocks(plan.buffers.size());
  const auto allocate = [&](std::size_t b) {
    blocks[b] = allocator.allocate(std::max(plan.buffers[b].bytes, Bytes{1}), StreamId{0});
  };
  const auto on_device = [&](std::size_t b) { return plan.buffers[b].memory == Memory::device; };
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (plan.buffers[b].initial && on_device(b)) allocate(b);
  }
  std::size_t position = 0;
  for (const Op& op : plan.ops) {
    if (plan.streams[op.stream.index].kind != StreamKind::compute) continue;
    for (const auto use : ending[position]) allocator.end(use);
    ++position;
    const bool memory = op.kind == OpKind::allocate || op.kind == OpKind::release;
    if (!memory || !on_device(op.buffer.index)) continue;
    if (op.kind == OpKind::allocate) {
      allocate(op.buffer.index);
    } else if (op.after.valid() && next[op.after.index] >= static_cast<std::int64_t>(position)) {
      ending[static_cast<std::size_t>(next[op.after.index])].push_back(op.after.index);
      allocator.free(blocks[op.buffer.index], std::vector{op.after.index});
    } else {
      allocator.free(blocks[op.buffer.index]);
    }
  }
  return allocator.peak_reserved();
}

}  // namespace

DeviceBacking backing_of(const Plan& plan) {
  const auto packed = [](const Buffer& buffer) { return buffer.memory == Memory::device && buffer.packed; };
  return std::any_of(plan.buffers.begin(), plan.buffers.end(), packed) ? DeviceBacking::arena : DeviceBacking::caching;
}

memory::Arena place_buffers(const Plan& plan) {
  const std::vector<DeviceLife> lives = device_lives(plan);
  std::vector<memory::ArenaSlot> slots(plan.buffers.size());
  for (std::size_t b = 0; b < slots.size(); ++b) {
    if (lives[b].alive()) slots[b] = {plan.buffers[b].bytes, lives[b].first, lives[b].last};
  }
  return memory::place_in_arena(slots);
}

Bytes device_bytes_needed(const Program& program) {
  const Plan& plan = *program.plan;
  return backing_of(plan) == DeviceBacking::arena ? place_buffers(plan).size : reserved_by_caching(plan);
}

}  // namespace ebb::replay
