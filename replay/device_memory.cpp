#include "replay/device_memory.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/errors.hpp"
#include "replay/cuda.hpp"
#include "replay/device_layout.hpp"
#include "replay/device_segments.hpp"
#include "replay/torch_memory.hpp"

namespace ebb::replay {

namespace {

constexpr StreamId kStream{0};  // blocks are reused in the order of the compute stream

Bytes used_by_everybody() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {static_cast<std::int64_t>(total - free)};
}

std::vector<const Plan*> plans_of(std::span<const Program* const> programs) {
  std::vector<const Plan*> plans;
  for (const Program* program : programs) plans.push_back(program->plan);
  return plans;
}

}  // namespace

struct DeviceMemory::State {
  State(std::span<const Program* const> parts, DeviceMemoryOptions options);

  void* real_allocate(BufferId buffer);
  void end(OpId op);
  void sample() { driver_peak = std::max(driver_peak, used_by_everybody()); }
  void before_driver_call() const {
    if (ready && options.before_driver_call) options.before_driver_call();
  }

  const Plan& plan() const { return *parts[part]->plan; }
  const Buffer& buffer(BufferId id) const { return plan().buffers[id.index]; }

  std::vector<const Program*> parts;
  std::size_t part = 0;
  DeviceMemoryOptions options;
  bool ready = false;  // constructed: a step may be running
  DeviceBacking backing;

  // caching. The allocator goes before its segments.
  DeviceSegments segments;
  memory::CachingAllocator allocator;
  std::vector<memory::CachingAllocator::Block> blocks;
  // arena
  LifeArena arena;
  DeviceBytes arena_bytes;

  std::vector<void*> addresses;  // by buffer; null: not alive. A live buffer of no bytes has some address.
  std::vector<OpId> waiting;     // uses that have not ended, each once
  TorchMemory torch;
  Bytes live{0};
  Bytes peak_live{0};
  Bytes driver_peak{0};
};

DeviceMemory::State::State(std::span<const Program* const> all, DeviceMemoryOptions with)
    : parts(all.begin(), all.end()),
      options(std::move(with)),
      backing(backing_of(plans_of(all))),
      segments([this] { before_driver_call(); }, [this] { sample(); }),
      allocator({}, segments.source()),
      blocks(plan().buffers.size()),
      addresses(plan().buffers.size(), nullptr),
      torch(*all[0]) {
  sample();
  if (backing == DeviceBacking::arena) {
    arena = place_life(plans_of(all));
    arena_bytes = make_device_bytes(std::max(arena.size, memory::kArenaAlignment));
    sample();
  }
  for (std::uint32_t b = 0; b < plan().buffers.size(); ++b) {
    if (buffer({b}).initial && buffer({b}).memory == Memory::device) addresses[b] = real_allocate({b});
  }
  ready = true;
}

void* DeviceMemory::State::real_allocate(BufferId id) {
  const Bytes bytes = buffer(id).bytes;
  live += bytes;
  peak_live = std::max(peak_live, live);
  if (backing == DeviceBacking::arena) {
    return static_cast<std::byte*>(arena_bytes.get()) + arena.offsets[part][id.index].value;
  }
  auto& block = blocks[id.index];
  block = allocator.allocate(std::max(bytes, Bytes{1}), kStream);  // an address for an empty one, too
  return segments.real(allocator.address(block));
}

void DeviceMemory::State::end(OpId op) {
  allocator.end(op.index);
  torch.end(op.index);
}

DeviceMemory::DeviceMemory(std::span<const Program* const> parts, DeviceMemoryOptions options)
    : state_(std::make_unique<State>(parts, std::move(options))) {}
DeviceMemory::DeviceMemory(const Program& program, DeviceMemoryOptions options)
    : DeviceMemory(std::array{&program}, std::move(options)) {}
DeviceMemory::~DeviceMemory() = default;
DeviceMemory::DeviceMemory(DeviceMemory&&) noexcept = default;
DeviceMemory& DeviceMemory::operator=(DeviceMemory&&) noexcept = default;

void* DeviceMemory::allocate(BufferId buffer) {
  State& s = *state_;
  EBB_ASSERT(s.buffer(buffer).memory == Memory::device && s.addresses[buffer.index] == nullptr);
  s.torch.allocate(buffer);
  return s.addresses[buffer.index] = s.real_allocate(buffer);
}

void DeviceMemory::release(BufferId buffer, OpId after) {
  State& s = *state_;
  EBB_ASSERT(s.addresses[buffer.index] != nullptr);
  s.addresses[buffer.index] = nullptr;
  s.live -= s.buffer(buffer).bytes;
  std::vector<memory::CachingAllocator::Use> uses;
  if (after.valid()) {
    uses.push_back(after.index);
    if (std::find(s.waiting.begin(), s.waiting.end(), after) == s.waiting.end()) s.waiting.push_back(after);
  }
  if (s.backing == DeviceBacking::caching) s.allocator.free(std::exchange(s.blocks[buffer.index], {}), uses);
  s.torch.release(buffer, after.valid() ? std::optional(after.index) : std::nullopt);
}

void DeviceMemory::poll(const std::function<bool(OpId)>& done) {
  std::erase_if(state_->waiting, [&](OpId op) {
    if (!done(op)) return false;
    state_->end(op);
    return true;
  });
}

void DeviceMemory::step_ended() {
  poll([](OpId) { return true; });
}

void DeviceMemory::take_up(std::size_t next, Carry when) {
  State& s = *state_;
  EBB_ASSERT(next < s.parts.size() && (when == Carry::behind_decision || s.waiting.empty()));
  std::vector<bool> alive;
  for (const void* address : s.addresses) alive.push_back(address != nullptr);
  const std::vector<BufferId> from = carry_over(s.plan(), alive, *s.parts[next]->plan, when);
  std::vector<void*> addresses(from.size(), nullptr);
  std::vector<memory::CachingAllocator::Block> blocks(from.size());
  for (std::size_t b = 0; b < from.size(); ++b) {
    if (!from[b].valid()) continue;
    addresses[b] = s.addresses[from[b].index];
    blocks[b] = s.blocks[from[b].index];
    EBB_ASSERT(s.backing != DeviceBacking::arena || s.arena.offsets[next][b] == s.arena.offsets[s.part][from[b].index]);
  }
  s.addresses = std::move(addresses);
  s.blocks = std::move(blocks);
  s.torch.take_up(*s.parts[next], from);
  s.part = next;
}

void* DeviceMemory::at(BufferId buffer) const { return state_->addresses[buffer.index]; }

Bytes DeviceMemory::live() const { return state_->live; }
Bytes DeviceMemory::peak_live() const { return state_->peak_live; }
Bytes DeviceMemory::reserved() const {
  return state_->backing == DeviceBacking::arena ? state_->arena.size : state_->allocator.reserved();
}
Bytes DeviceMemory::torch_allocated_peak() const { return state_->torch.peak_allocated(); }
Bytes DeviceMemory::torch_reserved_peak() const { return state_->torch.peak_reserved(); }
Bytes DeviceMemory::driver_peak() const { return state_->driver_peak; }
void DeviceMemory::sample_driver() { state_->sample(); }

}  // namespace ebb::replay
