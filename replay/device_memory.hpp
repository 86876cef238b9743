// DeviceMemory: real device memory for a plan's buffers of one rank, and what it costs in four ways of counting: live
// bytes of the plan, what torch would show (torch_memory.hpp), what the driver says, and what is reserved here. In a
// life it goes from plan to plan: what is alive stays where it is, under the next plan's number.
//
// Two backings.
//   caching: as Megatron's policies run: torch's caching allocator (its model, models/memory) over real segments of
//     cudaMalloc, one block a buffer.
//   arena: for plans with packed slots, Ebb's own policies: one cudaMalloc, each buffer at a fixed offset
//     (device_layout.hpp), large enough for every plan of the life.
// Storage is stream-ordered on the compute stream: allocate() and release() are host calls in plan order, between the
// enqueueing of the ops around them. Another stream orders itself through the plan's dependencies on the allocate op.
// Not here: instruments (what replay itself needs: the engine's own allocations), poison, threads: one rank's thread
// uses it, with its device current.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "replay/carry_over.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

enum class DeviceBacking : std::uint8_t { caching, arena };

/// arena where some device buffer of some plan is packed.
DeviceBacking backing_of(std::span<const Plan* const> plans);

/// What a plan's buffers will take of the device: reserved segments in program order, or the arena. Pure.
Bytes device_bytes_needed(const Program& program);
/// ... those of a life that runs `plans` in `order` (of parts; it may repeat). InputError where a part does not begin
/// with what the one before it leaves alive.
Bytes device_bytes_needed(std::span<const Plan* const> plans, std::span<const Plan* const> order);

struct DeviceMemoryOptions {
  /// Called before cudaMalloc and cudaFree while a step runs: the driver may wait for everything that is enqueued, so a
  /// gate must be opened first.
  std::function<void()> before_driver_call;
};

class DeviceMemory {
 public:
  /// Allocates the initial buffers. CudaError; InputError where the device has too little. `program` outlives it.
  explicit DeviceMemory(const Program& program, DeviceMemoryOptions options = {});
  /// Of a life: it begins with the first of `parts` and has room for all of them. They outlive it.
  explicit DeviceMemory(std::span<const Program* const> parts, DeviceMemoryOptions options = {});
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&&) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) noexcept;

  /// Begins a life. Preconditions: a device buffer, not alive. Call poll() before.
  void* allocate(BufferId buffer);
  /// Ends it. `after` (Op::after, may be none): the storage may be reused by any op of the compute stream only when
  /// that op has ended, which poll() finds out.
  void release(BufferId buffer, OpId after = OpId::none());
  /// Asks for each op that storage still waits for whether it has ended (an event query).
  void poll(const std::function<bool(OpId)>& done);
  /// The device is idle: all have ended. Call between steps.
  void step_ended();

  /// From now on buffers are those of part `next` (by index): what is alive goes on there by name (carry_over.hpp), the
  /// rest is not alive. Precondition between parts: step_ended(). InputError where the plans do not fit together.
  void take_up(std::size_t next, Carry when);

  /// Where a live buffer is; null where it is not alive.
  void* at(BufferId buffer) const;

  Bytes live() const;       // bytes of the plan's device buffers that are allocated and not released
  Bytes peak_live() const;  // since construction
  Bytes reserved() const;   // segments or arena
  Bytes torch_allocated_peak() const;
  Bytes torch_reserved_peak() const;
  /// Device memory in use by everybody, context included; the highest seen at driver calls and by sample_driver().
  Bytes driver_peak() const;
  void sample_driver();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ebb::replay
