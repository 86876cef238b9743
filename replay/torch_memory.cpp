#include "replay/torch_memory.hpp"

#include <algorithm>

#include "models/errors.hpp"

namespace ebb::replay {

namespace {

constexpr StreamId kStream{0};  // torch allocates and frees on the current stream: the compute stream

/// A tensor for each state and shard; of a shard that is held in part, its part.
std::vector<Bytes> state_tensors(const Plan& plan, const Buffer& buffer) {
  std::vector<Bytes> sizes;
  const auto for_each_shard = [&](auto visit) {
    std::int64_t begin = 0;
    for (const PlanShard& shard : plan.shards) {
      const std::int64_t end = begin + shard.numel.value;
      const std::int64_t held = std::min(end, buffer.holds.end) - std::max(begin, buffer.holds.begin);
      if (held > 0) visit(Numel{held});
      begin = end;
    }
  };
  const auto add = [&](Numel numel, StateBits state) {
    const Bytes bytes = bytes_of(numel, bytes_per_element(plan.precision, state));
    if ((buffer.states & state) != 0 && bytes.value > 0) sizes.push_back(bytes);
  };
  for_each_shard([&](Numel numel) { add(numel, kMaster); });
  for_each_shard([&](Numel numel) {
    add(numel, kExpAvg);
    add(numel, kExpAvgSq);
  });
  return sizes;
}

/// Equal tensors of whole 512 bytes, as torch counts them; the last takes what is left.
std::vector<Bytes> equal_tensors(Bytes bytes, std::uint32_t count) {
  const std::int64_t part = round_up(ceil_div(bytes.value, count), 512);
  std::vector<Bytes> sizes;
  for (std::int64_t left = bytes.value; left > 0; left -= part) sizes.push_back({std::min(part, left)});
  return sizes;
}

}  // namespace

std::vector<Bytes> tensors_of(const Program& program, BufferId id) {
  const Plan& plan = *program.plan;
  const Buffer& buffer = plan.buffers[id.index];
  if (buffer.memory != Memory::device) return {};
  if (buffer.role == Role::state && !buffer.packed && buffer.holds.numel().value > 0) {
    return state_tensors(plan, buffer);
  }
  EBB_ASSERT(program.tensors[id.index] > 0);
  return equal_tensors(buffer.bytes, program.tensors[id.index]);
}

TorchMemory::TorchMemory(const Program& program) : blocks_(program.plan->buffers.size()) {
  measure(program);
  for (std::uint32_t b = 0; b < blocks_.size(); ++b)
    if (program.plan->buffers[b].initial) allocate({b});
}

void TorchMemory::measure(const Program& program) {
  sizes_.clear();
  for (std::uint32_t b = 0; b < program.plan->buffers.size(); ++b) sizes_.push_back(tensors_of(program, {b}));
}

void TorchMemory::take_up(const Program& next, std::span<const BufferId> from) {
  measure(next);
  std::vector<std::vector<memory::CachingAllocator::Block>> blocks(from.size());
  for (std::size_t b = 0; b < from.size(); ++b)
    if (from[b].valid()) blocks[b] = std::move(blocks_[from[b].index]);
  blocks_ = std::move(blocks);
}

void TorchMemory::allocate(BufferId buffer) {
  auto& blocks = blocks_[buffer.index];
  EBB_ASSERT(blocks.empty());
  for (const Bytes bytes : sizes_[buffer.index]) blocks.push_back(allocator_.allocate(bytes, kStream));
}

void TorchMemory::release(BufferId buffer, std::optional<memory::CachingAllocator::Use> use) {
  auto& blocks = blocks_[buffer.index];
  std::vector<memory::CachingAllocator::Use> uses;
  if (use) uses.push_back(*use);
  for (const auto block : blocks) allocator_.free(block, uses);
  blocks.clear();
}

}  // namespace ebb::replay
