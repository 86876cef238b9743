// CachingAllocator: torch's CUDA caching allocator as a model. Which bytes a sequence of tensor allocations and frees
// leaves allocated and reserved, exactly as torch.cuda.memory_allocated() and memory_reserved() report them.
//
// The rules (torch 2.11, c10/cuda/CUDACachingAllocator.cpp; checked against torch on a GPU call by call, tests/data):
// a request is rounded to 512 B and served by the smallest free block of its stream and size class that is large
// enough; the rest is split off when it is worth keeping; otherwise the driver gives a new segment. Freed neighbours
// merge. When the driver has no more, all pending uses are waited for, whatever is cached and whole goes back to the
// driver, and the allocation is tried once more.
//
// Not here: time. A block that another stream still uses (record_stream) comes back when the caller says that this use
// has ended. Not here either: max_split_size_mb, garbage_collection_threshold, roundup_power2_divisions (all off by
// default in torch), private pools (CUDA graphs), more than one device.
//
// Among free blocks of equal size torch takes the one at the lowest address, which the driver decides
// (driver_addresses.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "models/ids.hpp"
#include "models/memory/driver_addresses.hpp"
#include "models/memory/free_list.hpp"
#include "models/units.hpp"

namespace ebb::memory {

struct CachingAllocatorOptions {
  Bytes capacity{std::int64_t{1} << 50};  // what the driver can give; at most 1 PiB is believed
  Bytes allowed{std::int64_t{1} << 50};   // torch.cuda.set_per_process_memory_fraction, in bytes
  bool expandable_segments = false;       // PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
};

/// Real memory behind the model's segments, for an owner that backs them: called only where torch calls the driver.
/// Whoever owns the memory frees what has not been given back when the allocator goes.
struct SegmentSource {
  /// A segment of `bytes` at `address` of the model; false: the driver has no more.
  std::function<bool(std::uint64_t address, Bytes bytes)> take;
  std::function<void(std::uint64_t address, Bytes bytes)> give;
  /// Every use has ended when it returns: comes before the cache is given back.
  std::function<void()> wait;
};

class CachingAllocator {
 public:
  /// A live tensor storage.
  struct Block {
    std::uint32_t index = std::numeric_limits<std::uint32_t>::max();
    bool operator==(const Block&) const = default;
  };
  /// A use on another stream that may not have ended. The caller numbers them from 0 (memory grows with the largest
  /// number) and may reuse a number once it has ended.
  using Use = std::uint32_t;

  explicit CachingAllocator(CachingAllocatorOptions options = {});
  /// Over real memory. Preconditions: all three functions; no expandable segments, whose addresses come before memory.
  CachingAllocator(CachingAllocatorOptions options, SegmentSource source);

  /// As freshly constructed, but keeps its memory: replaying a sequence a second time allocates nothing. Precondition:
  /// no real memory behind it.
  void reset();

  /// torch.empty(bytes) while `stream` is current. 0 bytes: a block that occupies nothing. InputError when the driver
  /// cannot give what is missing even after everything cached has been returned to it (torch's OutOfMemoryError).
  /// Precondition: bytes >= 0.
  Block allocate(Bytes bytes, StreamId stream);
  /// The last reference goes. `uses`: what record_stream noted and has not ended; the bytes stop counting as allocated
  /// now, and the block can be given out again once all of them have. (torch notes a use at the free: it ends when the
  /// other stream has done all that was enqueued on it by then; its own stream is no other.) Precondition: `block` is
  /// live.
  void free(Block block, std::span<const Use> uses = {});
  /// `use` has ended: from the next allocate() on, blocks that waited for it alone can be given out.
  void end(Use use);
  /// torch.cuda.empty_cache(): waits for every use, then returns what is cached and whole.
  void empty_cache();

  Bytes allocated() const { return {allocated_}; }
  Bytes reserved() const { return {reserved_}; }
  Bytes peak_allocated() const { return {peak_allocated_}; }
  Bytes peak_reserved() const { return {peak_reserved_}; }
  /// How often the driver was asked for memory and gave it (cudaMalloc, or one mapping): what the host pays for.
  std::int64_t driver_allocations() const { return driver_allocations_; }
  /// How often the driver had no more, so that the device was waited for and the cache given back.
  std::int64_t retries() const { return retries_; }

  /// What a live block counts as allocated, and where it lies in the model's address space (not the driver's).
  Bytes bytes(Block block) const;
  std::uint64_t address(Block block) const;

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = std::numeric_limits<Index>::max();
  static constexpr std::int64_t kGranule = 512;                       // every request is a multiple
  static constexpr std::int64_t kLargestSmall = (1_MiB).value;        // what goes to the pools of small blocks
  static constexpr std::int64_t kBelievable = std::int64_t{1} << 50;  // keeps every sum far from overflow
  static bool is_small(Index pool) { return pool % 2 == 0; }

  enum class State : std::uint8_t { kUsed, kWaiting, kFree, kUnmapped };
  /// A piece of a segment; prev and next are its neighbours there. kUnmapped: addresses without memory (expandable).
  struct Piece {
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    Index prev = kNone;
    Index next = kNone;
    Index pool = 0;
    std::uint32_t uses = 0;  // that have not ended
    State state = State::kFree;
  };
  struct Pool {  // of one stream and size class
    FreeList free;
    std::vector<Index> unmapped;  // by address
  };
  struct Pending {
    Index piece = kNone;
    Index next = kNone;
  };

  Index new_piece(std::uint64_t address, std::int64_t bytes, Index pool, State state);
  Index split_front(Index piece, std::int64_t bytes);
  void merge(Index into, Index from);
  void make_free(Index piece);
  void make_unmapped(Index piece);
  void insert_free(Index piece);
  void erase_free(Index piece);
  void erase_unmapped(Index piece);

  static std::int64_t segment_bytes(std::int64_t bytes);
  static std::int64_t page_bytes(Index pool);
  Index take_free(Index pool, std::int64_t bytes);
  Index grow(Index pool, std::int64_t bytes);
  Index grow_expandable(Index pool, std::int64_t bytes);
  Index find_expandable(Index pool, std::int64_t bytes);
  bool map(Index piece, std::int64_t bytes);
  void unmap(Index piece);
  void release_cache();
  void end_all();
  void count_reserved(std::int64_t bytes);
  std::int64_t room_to_expand(Index piece) const;

  CachingAllocatorOptions options_;
  std::vector<Piece> pieces_;
  std::vector<Index> unused_pieces_;
  std::vector<Pool> pools_;           // stream * 2 + (large ? 1 : 0)
  std::vector<Index> first_pending_;  // by use
  std::vector<Pending> pending_;
  Index unused_pending_ = kNone;
  std::vector<Index> scratch_;
  DriverAddresses driver_;
  SegmentSource source_;  // empty: a model alone
  std::uint64_t next_expandable_ = 0;
  std::int64_t allocated_ = 0;
  std::int64_t reserved_ = 0;
  std::int64_t peak_allocated_ = 0;
  std::int64_t peak_reserved_ = 0;
  std::int64_t driver_allocations_ = 0;
  std::int64_t retries_ = 0;
};

}  // namespace ebb::memory
