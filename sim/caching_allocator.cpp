// Segments cut into pieces; free pieces sorted by (size, address) per stream and size class.
#include "sim/caching_allocator.hpp"

#include <algorithm>
#include <string>

#include "models/errors.hpp"

namespace ebb::sim {

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGranule = 512;             // every request is a multiple
constexpr std::int64_t kLargestSmall = kMiB;       // small class: up to here
constexpr std::int64_t kSmallSegment = 2 * kMiB;   // and its segments
constexpr std::int64_t kLargeSegment = 20 * kMiB;  // large class: below kOwnSegment
constexpr std::int64_t kOwnSegment = 10 * kMiB;    // from here on a segment of its own, a multiple of kSegmentStep
constexpr std::int64_t kSegmentStep = 2 * kMiB;
constexpr std::int64_t kBelievable = std::int64_t{1} << 50;  // keeps every sum far from overflow

bool is_small(std::uint32_t pool) { return pool % 2 == 0; }

/// What cudaMalloc is asked for when no free piece holds `bytes`.
std::int64_t segment_bytes(std::int64_t bytes) {
  if (bytes <= kLargestSmall) return kSmallSegment;
  return bytes < kOwnSegment ? kLargeSegment : round_up(bytes, kSegmentStep);
}

/// The unit in which an expandable segment gets memory.
std::int64_t page_bytes(std::uint32_t pool) { return is_small(pool) ? kSmallSegment : kLargeSegment; }

}  // namespace

CachingAllocator::CachingAllocator(CachingAllocatorOptions options) : options_(options) {
  options_.capacity.value = std::clamp<std::int64_t>(options.capacity.value, 0, kBelievable);
  options_.allowed.value = std::clamp<std::int64_t>(options.allowed.value, 0, kBelievable);
}

void CachingAllocator::reset() {
  pieces_.clear();
  unused_pieces_.clear();
  for (Pool& pool : pools_) {
    pool.free.clear();
    pool.unmapped.clear();
  }
  first_pending_.clear();
  pending_.clear();
  unused_pending_ = kNone;
  next_address_ = 0;
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
  auto& list = pools_[p.pool].free;
  const Entry entry{p.bytes, p.address, piece};
  list.insert(std::lower_bound(list.begin(), list.end(), entry), entry);
}

void CachingAllocator::erase_free(Index piece) {
  const Piece& p = pieces_[piece];
  auto& list = pools_[p.pool].free;
  list.erase(std::lower_bound(list.begin(), list.end(), Entry{p.bytes, p.address, piece}));
}

void CachingAllocator::erase_unmapped(Index piece) { std::erase(pools_[pieces_[piece].pool].unmapped, piece); }

// Where memory comes from.

std::int64_t CachingAllocator::room_to_expand(Index piece) const {
  const Piece& p = pieces_[piece];
  return p.bytes + (p.next != kNone && pieces_[p.next].state == State::kUnmapped ? pieces_[p.next].bytes : 0);
}

/// The smallest free piece that holds `bytes`, out of its list; kNone without one. In an expandable segment a piece
/// counts with the addresses behind it, and the search goes on for as long as that gets smaller.
CachingAllocator::Index CachingAllocator::take_free(Index pool, std::int64_t bytes) {
  auto& list = pools_[pool].free;
  auto it = std::lower_bound(list.begin(), list.end(), Entry{bytes, 0, 0});
  if (it == list.end()) return kNone;
  if (options_.expandable_segments) {
    while (it + 1 != list.end() && room_to_expand((it + 1)->piece) < room_to_expand(it->piece)) ++it;
  }
  const Index piece = it->piece;
  list.erase(it);
  return piece;
}

void CachingAllocator::count_reserved(std::int64_t bytes) {
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  ++driver_allocations_;
}

/// New memory from the driver as one piece of at least `bytes`, in no list; kNone if it has no more.
CachingAllocator::Index CachingAllocator::grow(Index pool, std::int64_t bytes) {
  const std::int64_t segment = segment_bytes(bytes);
  if (reserved_ + segment > options_.allowed.value) return kNone;
  if (options_.expandable_segments) return grow_expandable(pool, bytes);
  if (reserved_ + segment > options_.capacity.value) return kNone;
  count_reserved(segment);
  const Index piece = new_piece(next_address_, segment, pool, State::kFree);
  next_address_ += static_cast<std::uint64_t>(segment);
  return piece;
}

CachingAllocator::Index CachingAllocator::grow_expandable(Index pool, std::int64_t bytes) {
  Index piece = find_expandable(pool, bytes);
  if (piece == kNone) return kNone;
  if (pieces_[piece].state == State::kUnmapped && !map(piece, std::min(pieces_[piece].bytes, bytes))) return kNone;
  while (pieces_[piece].bytes < bytes) {  // what follows a free piece that is too small is unmapped
    const Index behind = pieces_[piece].next;
    if (!map(behind, std::min(pieces_[behind].bytes, bytes - pieces_[piece].bytes))) return kNone;
    piece = behind;
  }
  erase_free(piece);
  return piece;
}

/// The lowest run of free and unmapped pieces that spans `bytes`, in a new segment if need be.
CachingAllocator::Index CachingAllocator::find_expandable(Index pool, std::int64_t bytes) {
  const auto available = [this](Index piece) { return piece != kNone && pieces_[piece].state >= State::kFree; };
  for (const Index unmapped : pools_[pool].unmapped) {
    const Index first = available(pieces_[unmapped].prev) ? pieces_[unmapped].prev : unmapped;
    std::int64_t span = 0;
    for (Index p = first; span < bytes && available(p); p = pieces_[p].next) span += pieces_[p].bytes;
    if (span >= bytes) return first;
  }
  // torch takes addresses for 9/8 of the device's memory.
  const std::int64_t addresses = round_up(options_.capacity.value / 8 * 9, kLargeSegment);
  if (addresses < bytes) return kNone;
  next_address_ = static_cast<std::uint64_t>(round_up(static_cast<std::int64_t>(next_address_), kLargeSegment));
  const Index piece = new_piece(next_address_, addresses, pool, State::kUnmapped);
  next_address_ += static_cast<std::uint64_t>(addresses);
  pools_[pool].unmapped.push_back(piece);
  return piece;
}

/// Maps the pages that hold the first `bytes` of an unmapped piece and makes them a free one. False: no more memory.
bool CachingAllocator::map(Index piece, std::int64_t bytes) {
  const std::int64_t mapped = round_up(bytes, page_bytes(pieces_[piece].pool));
  if (reserved_ + mapped > options_.capacity.value) return false;
  erase_unmapped(piece);
  const Index rest = mapped < pieces_[piece].bytes ? split_front(piece, mapped) : kNone;
  make_free(piece);
  if (rest != kNone) make_unmapped(rest);
  count_reserved(mapped);
  return true;
}

/// Gives back the pages that lie wholly in a free piece. The ends that share a page with a neighbour stay free.
void CachingAllocator::unmap(Index piece) {
  const auto page = static_cast<std::uint64_t>(page_bytes(pieces_[piece].pool));
  const std::uint64_t begin = (pieces_[piece].address + page - 1) / page * page;
  const std::uint64_t end = (pieces_[piece].address + static_cast<std::uint64_t>(pieces_[piece].bytes)) / page * page;
  if (begin >= end) return;
  erase_free(piece);
  if (begin > pieces_[piece].address) {
    const Index pages = split_front(piece, static_cast<std::int64_t>(begin - pieces_[piece].address));
    insert_free(piece);
    piece = pages;
  }
  const auto bytes = static_cast<std::int64_t>(end - begin);
  if (bytes < pieces_[piece].bytes) insert_free(split_front(piece, bytes));
  reserved_ -= bytes;
  make_unmapped(piece);
  if (pieces_[piece].prev == kNone && pieces_[piece].next == kNone) {  // the whole segment: its addresses go as well
    erase_unmapped(piece);
    unused_pieces_.push_back(piece);
  }
}

void CachingAllocator::release_cache() {
  end_all();
  for (Pool& pool : pools_) {
    if (options_.expandable_segments) {
      scratch_.clear();
      for (const Entry& entry : pool.free) scratch_.push_back(entry.piece);
      for (const Index piece : scratch_) unmap(piece);
      continue;
    }
    std::erase_if(pool.free, [this](const Entry& entry) {
      const Piece& p = pieces_[entry.piece];
      if (p.prev != kNone || p.next != kNone) return false;
      reserved_ -= p.bytes;
      unused_pieces_.push_back(entry.piece);
      return true;
    });
  }
}

}  // namespace ebb::sim
