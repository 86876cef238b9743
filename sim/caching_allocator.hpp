// CachingAllocator: torch's CUDA caching allocator as a model. Which bytes a sequence of tensor allocations and frees
// leaves allocated and reserved, exactly as torch.cuda.memory_allocated() and memory_reserved() report them.
//
// Source: torch 2.11 c10/cuda/CUDACachingAllocator.cpp. Checked against torch on a GPU call by call (tests/data).
//
// Not here: time. A block that another stream still uses (record_stream) comes back when the caller says that this use
// has ended.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "models/ids.hpp"
#include "models/units.hpp"

namespace ebb::sim {

struct CachingAllocatorOptions {
  Bytes capacity{std::numeric_limits<std::int64_t>::max()};  // what the driver can give
  bool expandable_segments = false;                          // PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
};

class CachingAllocator {
 public:
  /// A live tensor storage.
  struct Block {
    std::uint32_t index = 0;
    bool operator==(const Block&) const = default;
  };
  /// A use on another stream that may not have ended; numbered by the caller.
  using Use = std::uint32_t;

  explicit CachingAllocator(CachingAllocatorOptions options = {});

  /// torch.empty(bytes) while `stream` is current. 0 bytes: a block that occupies nothing. InputError when the driver
  /// cannot give what is missing even after everything cached has been returned to it (torch's OutOfMemoryError).
  Block allocate(Bytes bytes, StreamId stream);
  /// The last reference goes. `uses`: what record_stream noted and has not ended; the bytes stop counting as allocated
  /// now, and the block can be given out again once all of them have.
  void free(Block block, std::span<const Use> uses = {});
  /// `use` has ended: from the next allocate() on, blocks that waited for it alone can be given out.
  void end(Use use);
  /// torch.cuda.empty_cache().
  void empty_cache();

  Bytes allocated() const;
  Bytes reserved() const;
  Bytes peak_allocated() const;
  Bytes peak_reserved() const;
  /// Calls of cudaMalloc so far: what the host pays for.
  std::int64_t driver_allocations() const;
};

}  // namespace ebb::sim
