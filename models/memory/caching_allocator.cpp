// Segments cut into pieces; free pieces sorted by (size, address) per stream and size class.
#include "models/memory/caching_allocator.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "models/errors.hpp"

namespace ebb::memory {

CachingAllocator::CachingAllocator(CachingAllocatorOptions options) : options_(options) {
  options_.capacity.value = std::clamp<std::int64_t>(options.capacity.value, 0, kBelievable);
  options_.allowed.value = std::clamp<std::int64_t>(options.allowed.value, 0, kBelievable);
}

CachingAllocator::CachingAllocator(CachingAllocatorOptions options, SegmentSource source) : CachingAllocator(options) {
  EBB_ASSERT(source.take && source.give && source.wait && !options.expandable_segments);
  source_ = std::move(source);
}

void CachingAllocator::reset() {
  EBB_ASSERT(!source_.take);
  pieces_.clear();
  unused_pieces_.clear();
  for (Pool& pool : pools_) {
    pool.free.clear();
    pool.unmapped.clear();
  }
  first_pending_.clear();
  pending_.clear();
  unused_pending_ = kNone;
  driver_.clear();
  next_expandable_ = 0;
  allocated_ = reserved_ = peak_allocated_ = peak_reserved_ = 0;
  driver_allocations_ = retries_ = 0;
}

CachingAllocator::Block CachingAllocator::allocate(Bytes bytes, StreamId stream) {
  EBB_ASSERT(bytes.value >= 0 && stream.valid());
  if (bytes.value == 0) return {};
  const std::int64_t rounded = round_up(std::min(bytes.value, 2 * kBelievable), kGranule);
  const Index pool = 2 * stream.index + (rounded <= kLargestSmall ? 0 : 1);
  if (pool >= pools_.size()) pools_.resize(pool + 1);

  Index piece = take_free(pool, rounded);
  if (piece == kNone) piece = grow(pool, rounded);
  if (piece == kNone) {
    release_cache();
    ++retries_;
    piece = grow(pool, rounded);
  }
  if (piece == kNone) {
    throw InputError({}, "out of device memory: no room for " + std::to_string(bytes.value) + " bytes beside " +
                             std::to_string(allocated_) + " allocated and " + std::to_string(reserved_) + " reserved");
  }
  // A small rest of a large piece stays with it: that slack counts as allocated.
  const std::int64_t rest = pieces_[piece].bytes - rounded;
  const bool keep_rest = is_small(pool) || options_.expandable_segments ? rest >= kGranule : rest > kLargestSmall;
  if (keep_rest) insert_free(split_front(piece, rounded));
  pieces_[piece].state = State::kUsed;
  allocated_ += pieces_[piece].bytes;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return {piece};
}

void CachingAllocator::free(Block block, std::span<const Use> uses) {
  if (block == Block{}) return;
  EBB_ASSERT(block.index < pieces_.size() && pieces_[block.index].state == State::kUsed);
  allocated_ -= pieces_[block.index].bytes;
  if (uses.empty()) return make_free(block.index);
  pieces_[block.index].state = State::kWaiting;
  pieces_[block.index].uses = static_cast<std::uint32_t>(uses.size());
  for (const Use use : uses) {
    if (use >= first_pending_.size()) first_pending_.resize(std::size_t{use} + 1, kNone);
    Index node = unused_pending_;
    if (node == kNone) {
      node = static_cast<Index>(pending_.size());
      pending_.emplace_back();
    } else {
      unused_pending_ = pending_[node].next;
    }
    pending_[node] = {block.index, first_pending_[use]};
    first_pending_[use] = node;
  }
}

// Freeing at once is the same as at the next allocate(), where torch looks: nothing in between can tell, and which
// pieces are free and merged in the end does not depend on the order of the frees.
void CachingAllocator::end(Use use) {
  if (use >= first_pending_.size()) return;
  Index node = first_pending_[use];
  first_pending_[use] = kNone;
  while (node != kNone) {
    const Pending done = pending_[node];
    pending_[node].next = unused_pending_;
    unused_pending_ = node;
    node = done.next;
    if (--pieces_[done.piece].uses == 0) make_free(done.piece);
  }
}

void CachingAllocator::end_all() {
  for (Use use = 0; use < first_pending_.size(); ++use) end(use);
}

void CachingAllocator::empty_cache() { release_cache(); }

Bytes CachingAllocator::bytes(Block block) const { return {block == Block{} ? 0 : pieces_[block.index].bytes}; }

std::uint64_t CachingAllocator::address(Block block) const {
  return block == Block{} ? 0 : pieces_[block.index].address;
}

// Pieces and lists.

CachingAllocator::Index CachingAllocator::new_piece(std::uint64_t address, std::int64_t bytes, Index pool,
                                                    State state) {
  Index index;
  if (unused_pieces_.empty()) {
    index = static_cast<Index>(pieces_.size());
    pieces_.emplace_back();
  } else {
    index = unused_pieces_.back();
    unused_pieces_.pop_back();
  }
  pieces_[index] = {.address = address, .bytes = bytes, .pool = pool, .state = state};
  return index;
}

/// Cuts `piece` down to its first `bytes` and returns the rest, of the same state and in no list yet.
CachingAllocator::Index CachingAllocator::split_front(Index piece, std::int64_t bytes) {
  const Piece whole = pieces_[piece];
  const Index rest =
      new_piece(whole.address + static_cast<std::uint64_t>(bytes), whole.bytes - bytes, whole.pool, whole.state);
  pieces_[rest].prev = piece;
  pieces_[rest].next = whole.next;
  if (whole.next != kNone) pieces_[whole.next].prev = rest;
  pieces_[piece].next = rest;
  pieces_[piece].bytes = bytes;
  return rest;
}

/// Takes the neighbour `from` out of its list and into `into` if both are free, or both unmapped.
void CachingAllocator::merge(Index into, Index from) {
  if (from == kNone || pieces_[from].state != pieces_[into].state) return;
  if (pieces_[from].state == State::kFree) {
    erase_free(from);
  } else {
    erase_unmapped(from);
  }
  Piece& kept = pieces_[into];
  const Piece& gone = pieces_[from];
  kept.bytes += gone.bytes;
  if (kept.prev == from) {
    kept.address = gone.address;
    kept.prev = gone.prev;
    if (kept.prev != kNone) pieces_[kept.prev].next = into;
  } else {
    kept.next = gone.next;
    if (kept.next != kNone) pieces_[kept.next].prev = into;
  }
  unused_pieces_.push_back(from);
}

void CachingAllocator::make_free(Index piece) {
  pieces_[piece].state = State::kFree;
  merge(piece, pieces_[piece].prev);
  merge(piece, pieces_[piece].next);
  insert_free(piece);
}

void CachingAllocator::make_unmapped(Index piece) {
  pieces_[piece].state = State::kUnmapped;
  merge(piece, pieces_[piece].prev);
  merge(piece, pieces_[piece].next);
  auto& list = pools_[pieces_[piece].pool].unmapped;
  const auto before = [this](Index a, Index b) { return pieces_[a].address < pieces_[b].address; };
  list.insert(std::lower_bound(list.begin(), list.end(), piece, before), piece);
}

void CachingAllocator::insert_free(Index piece) {
  const Piece& p = pieces_[piece];
  pools_[p.pool].free.insert({p.bytes, p.address, piece});
}

void CachingAllocator::erase_free(Index piece) {
  const Piece& p = pieces_[piece];
  pools_[p.pool].free.erase({p.bytes, p.address, piece});
}

void CachingAllocator::erase_unmapped(Index piece) { std::erase(pools_[pieces_[piece].pool].unmapped, piece); }

}  // namespace ebb::memory
