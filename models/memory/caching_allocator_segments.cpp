// Where a CachingAllocator's memory comes from and goes: cached pieces, segments of the driver, expandable segments.
#include <algorithm>

#include "models/memory/caching_allocator.hpp"

namespace ebb::memory {

namespace {

constexpr std::int64_t kSmallSegment = (2_MiB).value;
constexpr std::int64_t kLargeSegment = (20_MiB).value;  // for requests below kOwnSegment
constexpr std::int64_t kOwnSegment = (10_MiB).value;    // from here on a segment of its own, a multiple of kSegmentStep
constexpr std::int64_t kSegmentStep = (2_MiB).value;
constexpr std::int64_t kMostAddresses = std::int64_t{1} << 46;  // of one expandable segment

}  // namespace

/// What cudaMalloc is asked for when no free piece holds `bytes`.
std::int64_t CachingAllocator::segment_bytes(std::int64_t bytes) {
  if (bytes <= kLargestSmall) return kSmallSegment;
  return bytes < kOwnSegment ? kLargeSegment : round_up(bytes, kSegmentStep);
}

/// The unit in which an expandable segment gets memory.
std::int64_t CachingAllocator::page_bytes(Index pool) { return is_small(pool) ? kSmallSegment : kLargeSegment; }

std::int64_t CachingAllocator::room_to_expand(Index piece) const {
  const Piece& p = pieces_[piece];
  return p.bytes + (p.next != kNone && pieces_[p.next].state == State::kUnmapped ? pieces_[p.next].bytes : 0);
}

/// The smallest free piece that holds `bytes`, out of its list; kNone without one. In an expandable segment a piece
/// counts with the addresses behind it, and the search goes on for as long as that gets smaller.
CachingAllocator::Index CachingAllocator::take_free(Index pool, std::int64_t bytes) {
  FreeList& list = pools_[pool].free;
  FreeList::Place place = list.first_of_at_least(bytes);
  if (place == FreeList::end()) return kNone;
  if (options_.expandable_segments) {
    const auto room = [&](FreeList::Place at) { return room_to_expand(list.at(at).piece); };
    for (auto next = list.next(place); next != FreeList::end() && room(next) < room(place); next = list.next(place))
      place = next;
  }
  const Index piece = list.at(place).piece;
  list.erase(place);
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
  const std::uint64_t address = driver_.take(segment);
  if (source_.take && !source_.take(address, {segment})) {
    driver_.give(address, segment);
    return kNone;
  }
  count_reserved(segment);
  return new_piece(address, segment, pool, State::kFree);
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
  const std::int64_t addresses = round_up(std::min(options_.capacity.value / 8 * 9, kMostAddresses), kLargeSegment);
  if (addresses < bytes) return kNone;
  const Index piece = new_piece(next_expandable_, addresses, pool, State::kUnmapped);  // a multiple of either page
  next_expandable_ += static_cast<std::uint64_t>(addresses);
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
  if (source_.wait) source_.wait();
  end_all();
  for (Pool& pool : pools_) {
    if (options_.expandable_segments) {
      scratch_.clear();
      pool.free.for_each([this](const FreePiece& entry) { scratch_.push_back(entry.piece); });
      for (const Index piece : scratch_) unmap(piece);
      continue;
    }
    pool.free.erase_if([this](const FreePiece& entry) {
      const Piece& p = pieces_[entry.piece];
      if (p.prev != kNone || p.next != kNone) return false;
      reserved_ -= p.bytes;
      driver_.give(p.address, p.bytes);
      if (source_.give) source_.give(p.address, {p.bytes});
      unused_pieces_.push_back(entry.piece);
      return true;
    });
  }
}

}  // namespace ebb::memory
