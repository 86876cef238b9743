#include "replay/device_memory.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
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

}  // namespace

struct DeviceMemory::State {
  State(const Program& program, DeviceMemoryOptions options);

  void* real_allocate(BufferId buffer);
  void end(OpId op);
  void sample() { driver_peak = std::max(driver_peak, used_by_everybody()); }
  void before_driver_call() const {
    if (ready && options.before_driver_call) options.before_driver_call();
  }

  const Program& program;
  const Plan& plan;
  DeviceMemoryOptions options;
  bool ready = false;  // constructed: a step may be running
  DeviceBacking backing;

  // caching. The allocator goes before its segments.
  DeviceSegments segments;
  memory::CachingAllocator allocator;
  std::vector<memory::CachingAllocator::Block> blocks;
  // arena
  memory::Arena arena;
  DeviceBytes arena_bytes;

  std::vector<void*> addresses;  // by buffer; null: not alive. A live buffer of no bytes has some address.
  std::vector<OpId> waiting;     // uses that have not ended, each once
  TorchMemory torch;
  Bytes live{0};
  Bytes peak_live{0};
  Bytes driver_peak{0};
};

DeviceMemory::State::State(const Program& of, DeviceMemoryOptions with)
    : program(of),
      plan(*of.plan),
      options(std::move(with)),
      backing(backing_of(plan)),
      segments([this] { before_driver_call(); }, [this] { sample(); }),
      allocator({}, segments.source()),
      blocks(plan.buffers.size()),
      addresses(plan.buffers.size(), nullptr),
      torch(of) {
  sample();
  if (backing == DeviceBacking::arena) {
    arena = place_buffers(plan);
    arena_bytes = make_device_bytes(std::max(arena.size, memory::kArenaAlignment));
    sample();
  }
  for (std::uint32_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].initial && plan.buffers[b].memory == Memory::device) addresses[b] = real_allocate({b});
  }
  ready = true;
}

void* DeviceMemory::State::real_allocate(BufferId buffer) {
  const Bytes bytes = plan.buffers[buffer.index].bytes;
  live += bytes;
  peak_live = std::max(peak_live, live);
  if (backing == DeviceBacking::arena) {
    return static_cast<std::byte*>(arena_bytes.get()) + arena.offsets[buffer.index].value;
  }
  auto& block = blocks[buffer.index];
  block = allocator.allocate(std::max(bytes, Bytes{1}), kStream);  // an address for an empty one, too
  return segments.real(allocator.address(block));
}

void DeviceMemory::State::end(OpId op) {
  allocator.end(op.index);
  torch.end(op.index);
}

DeviceMemory::DeviceMemory(const Program& program, DeviceMemoryOptions options)
    : state_(std::make_unique<State>(program, std::move(options))) {}
DeviceMemory::~DeviceMemory() = default;
DeviceMemory::DeviceMemory(DeviceMemory&&) noexcept = default;
DeviceMemory& DeviceMemory::operator=(DeviceMemory&&) noexcept = default;

void* DeviceMemory::allocate(BufferId buffer) {
  State& s = *state_;
  EBB_ASSERT(s.plan.buffers[buffer.index].memory == Memory::device && s.addresses[buffer.index] == nullptr);
  s.torch.allocate(buffer);
  return s.addresses[buffer.index] = s.real_allocate(buffer);
}

void DeviceMemory::release(BufferId buffer, OpId after) {
  State& s = *state_;
  EBB_ASSERT(s.addresses[buffer.index] != nullptr);
  s.addresses[buffer.index] = nullptr;
  s.live -= s.plan.buffers[buffer.index].bytes;
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
