// FreeList: the free pieces of one pool of a caching allocator, by (bytes, address): the order in which torch tries
// them.
//
// Why not one sorted vector: a job's trace keeps thousands of pieces, and each allocation would move half of them. Here
// sizes fall into four buckets an octave, each a short sorted vector, and a bit says which have any.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ebb::memory {

/// A free piece. `piece`: its owner's number for it.
struct FreePiece {
  std::int64_t bytes = 0;
  std::uint64_t address = 0;
  std::uint32_t piece = 0;

  auto operator<=>(const FreePiece&) const = default;
};

class FreeList {
 public:
  /// Of an entry; valid until the list changes.
  struct Place {
    std::size_t bucket = kBuckets;
    std::size_t index = 0;

    bool operator==(const Place&) const = default;
  };
  static constexpr Place end() { return {}; }

  /// Precondition: bytes > 0, and the same (bytes, address) is not in the list.
  void insert(const FreePiece& entry) {
    const std::size_t bucket = bucket_of(entry.bytes);
    if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
    std::vector<FreePiece>& list = buckets_[bucket];
    list.insert(std::lower_bound(list.begin(), list.end(), entry), entry);
    filled_[bucket / 64] |= std::uint64_t{1} << bucket % 64;
  }
  /// Precondition: it is in the list.
  void erase(const FreePiece& entry) {
    const std::size_t bucket = bucket_of(entry.bytes);
    const std::vector<FreePiece>& list = buckets_[bucket];
    const auto at = std::lower_bound(list.begin(), list.end(), entry);
    erase(Place{bucket, static_cast<std::size_t>(at - list.begin())});
  }
  void erase(Place place) {
    std::vector<FreePiece>& list = buckets_[place.bucket];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(place.index));
    mark(place.bucket);
  }

  /// The smallest piece of at least `bytes` > 0, of equal ones the one at the lowest address; end() if there is none.
  Place first_of_at_least(std::int64_t bytes) const {
    const std::size_t bucket = bucket_of(bytes);
    if (bucket < buckets_.size()) {
      const std::vector<FreePiece>& list = buckets_[bucket];
      const auto at = std::lower_bound(list.begin(), list.end(), FreePiece{bytes, 0, 0});
      if (at != list.end()) return {bucket, static_cast<std::size_t>(at - list.begin())};
    }
    return first_from(bucket + 1);
  }
  Place next(Place place) const {
    if (place.index + 1 < buckets_[place.bucket].size()) return {place.bucket, place.index + 1};
    return first_from(place.bucket + 1);
  }
  const FreePiece& at(Place place) const { return buckets_[place.bucket][place.index]; }

  /// In order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (Place place = first_from(0); place != end(); place = next(place)) visit(at(place));
  }
  /// In order, each once.
  template <class Gone>
  void erase_if(const Gone& gone) {
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      std::erase_if(buckets_[bucket], gone);
      mark(bucket);
    }
  }
  /// Keeps its memory.
  void clear() {
    for (std::vector<FreePiece>& list : buckets_) list.clear();
    filled_ = {};
  }

 private:
  static constexpr std::size_t kBuckets = 256;

  /// By the position of the highest bit and the two below it: 4 (w - 1) + those two, which ascends with `bytes`.
  static std::size_t bucket_of(std::int64_t bytes) {
    const auto number = static_cast<std::uint64_t>(bytes);
    const auto width = static_cast<std::size_t>(std::bit_width(number));
    const std::uint64_t below = width >= 3 ? number >> (width - 3) & 3 : number << (3 - width) & 3;
    return 4 * (width - 1) + below;
  }
  /// The first entry of this bucket and those after it.
  Place first_from(std::size_t bucket) const {
    for (std::size_t word = bucket / 64; word < filled_.size(); ++word) {
      const std::uint64_t before = word == bucket / 64 ? (std::uint64_t{1} << bucket % 64) - 1 : 0;
      if (const std::uint64_t left = filled_[word] & ~before; left != 0)
        return {64 * word + static_cast<std::size_t>(std::countr_zero(left)), 0};
    }
    return end();
  }
  void mark(std::size_t bucket) {
    if (buckets_[bucket].empty()) filled_[bucket / 64] &= ~(std::uint64_t{1} << bucket % 64);
  }

  std::vector<std::vector<FreePiece>> buckets_;
  std::array<std::uint64_t, kBuckets / 64> filled_{};  // bit: the bucket has an entry
};

}  // namespace ebb::memory
