// TorchMemory: what torch.cuda.memory_allocated() and memory_reserved() would show for a plan: its buffers tensor by
// tensor through the model of torch's caching allocator. A buffer of state is a tensor for each shard and state that it
// holds, any other buffer Program::tensors equal ones.
// Not here: real memory (device_memory.hpp); a torch job's tensors that the plan has no buffer for.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/memory/caching_allocator.hpp"
#include "replay/program.hpp"

namespace ebb::replay {

/// Sizes of the tensors of a device buffer in the order in which they are allocated: masters, then the moments shard by
/// shard. Their rounded sizes sum up to the buffer's bytes where it holds state.
std::vector<Bytes> tensors_of(const Program& program, BufferId buffer);

class TorchMemory {
 public:
  /// The initial buffers are there.
  explicit TorchMemory(const Program& program);

  void allocate(BufferId buffer);
  /// `use`: a use on another stream that end() reports.
  void release(BufferId buffer, std::optional<memory::CachingAllocator::Use> use = std::nullopt);
  void end(memory::CachingAllocator::Use use) { allocator_.end(use); }
  /// Buffers are those of `next` from now on; `from`: the present ones that they go on from (carry_over.hpp).
  void take_up(const Program& next, std::span<const BufferId> from);

  Bytes peak_allocated() const { return allocator_.peak_allocated(); }
  Bytes peak_reserved() const { return allocator_.peak_reserved(); }

 private:
  void measure(const Program& program);

  memory::CachingAllocator allocator_;  // of unlimited memory: what torch would ask for
  std::vector<std::vector<Bytes>> sizes_;
  std::vector<std::vector<memory::CachingAllocator::Block>> blocks_;
};

}  // namespace ebb::replay
