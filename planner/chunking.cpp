// Both packings are the same greedy walk over runs of shards: a shard joins the open chunk unless that would exceed
// the limit. `chunked` has one run per parameter group (Megatron-LM pull request 6544, _iter_chunks_by_numel),
// `windowed` one per chained optimizer (Megatron-LM dev, core/optimizer/cpu_offloading/
// chunked_optimizer_state_offload.py, merged as #6244).
//
// Breakpoints. A chunk's content depends on the limit only through comparisons "chunk + next shard <= limit". So the
// packing for limit L stays the same up to, not including, the smallest such sum of any chunk with a shard behind it,
// and at that sum the chunk grows: that is the next breakpoint. Example, shards 3 5 2 2:
//   1: 3|5|2|2 (sums 8 7 4)   4: 3|5|2 2 (8 7)   7: 3|5 2|2 (8 9)   8: 3 5|2 2 (10)   10: 3 5 2|2 (12)   12: 3 5 2 2
// Cost: one packing for each breakpoint, O(chunks log shards); a run of n different shards has at most n^2 / 2.
#include "planner/chunking.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/errors.hpp"

namespace ebb {

namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

/// Calls visit(begin, end) for every maximal run of shards that `same` holds together.
template <class Same, class Visit>
void for_each_run(std::span<const Shard> shards, Same same, Visit visit) {
  for (std::size_t begin = 0; begin < shards.size();) {
    std::size_t end = begin + 1;
    while (end < shards.size() && same(shards[begin], shards[end])) ++end;
    visit(begin, end);
    begin = end;
  }
}

bool same_optimizer(const Shard& a, const Shard& b) { return a.optimizer == b.optimizer; }
bool same_group(const Shard& a, const Shard& b) { return same_optimizer(a, b) && a.group == b.group; }

/// Greedy packing of shards [begin, end) up to `limit` elements.
void pack(std::span<const Shard> shards, std::size_t begin, std::size_t end, std::int64_t limit,
          std::vector<Chunk>& chunks) {
  for (std::size_t i = begin; i < end; ++i) {
    const Numel numel = shards[i].numel;
    if (i == begin || numel.value > limit - chunks.back().numel.value) {
      chunks.push_back({.first = static_cast<std::uint32_t>(i), .count = 0, .numel = Numel{0}});
    }
    ++chunks.back().count;
    chunks.back().numel += numel;
  }
}

/// Elements that fit in `chunk_size_mb` MiB: bytes are compared in Megatron, and b <= limit holds for whole elements
/// exactly when the elements are at most limit / bytes, rounded down.
std::int64_t elements_in(std::int64_t chunk_size_mb, std::int64_t bytes_per_element) {
  EBB_ASSERT(bytes_per_element > 0 && chunk_size_mb <= kUnlimited / kMiB);
  return chunk_size_mb <= 0 ? kUnlimited : chunk_size_mb * kMiB / bytes_per_element;
}

/// The smallest "chunk + next shard" of the packing for `limit`, kUnlimited when all is one chunk. `sums[i]` is the
/// number of elements in the run before shard i. Each chunk's end is found by binary search: O(chunks log shards).
std::int64_t next_sum(std::span<const std::int64_t> sums, std::int64_t limit) {
  std::int64_t smallest = kUnlimited;
  for (auto first = sums.begin(); first + 1 != sums.end();) {
    // The boundary behind the first shard that does not fit any more; a chunk has at least one shard.
    const auto behind = std::upper_bound(first + 2, sums.end(), limit,
                                         [&](std::int64_t most, std::int64_t sum) { return sum - *first > most; });
    if (behind != sums.end()) smallest = std::min(smallest, *behind - *first);
    first = behind - 1;
  }
  return smallest;
}

/// Breakpoints of all runs together, in multiples of `unit` bytes.
template <class Same>
std::vector<std::int64_t> breakpoints(std::span<const Shard> shards, Same same, std::int64_t bytes_per_element,
                                      std::int64_t unit) {
  std::vector<std::int64_t> found;
  if (!shards.empty()) found.push_back(1);
  for_each_run(shards, same, [&](std::size_t begin, std::size_t end) {
    std::vector<std::int64_t> sums(1, 0);
    for (std::size_t i = begin; i < end; ++i) sums.push_back(sums.back() + shards[i].numel.value);
    std::int64_t sum = next_sum(sums, unit / bytes_per_element);
    while (sum != kUnlimited) {
      const std::int64_t units = ceil_div(sum * bytes_per_element, unit);
      found.push_back(units);
      sum = next_sum(sums, units * unit / bytes_per_element);
    }
  });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

std::vector<Chunk> chunk_by_numel(std::span<const Shard> shards, Numel limit) {
  std::vector<Chunk> chunks;
  const std::int64_t most = limit.value <= 0 ? kUnlimited : limit.value;
  for_each_run(shards, same_group, [&](std::size_t begin, std::size_t end) { pack(shards, begin, end, most, chunks); });
  return chunks;
}

std::vector<Chunk> chunk_by_moments(std::span<const Shard> shards, std::int64_t chunk_size_mb,
                                    std::int64_t moment_bytes_per_element) {
  std::vector<Chunk> chunks;
  const std::int64_t most = elements_in(chunk_size_mb, moment_bytes_per_element);
  for_each_run(shards, same_optimizer,
               [&](std::size_t begin, std::size_t end) { pack(shards, begin, end, most, chunks); });
  return chunks;
}

std::vector<Numel> numel_breakpoints(std::span<const Shard> shards) {
  std::vector<Numel> result;
  for (const std::int64_t numel : breakpoints(shards, same_group, 1, 1)) result.push_back(Numel{numel});
  return result;
}

std::vector<std::int64_t> moment_breakpoints_mb(std::span<const Shard> shards, std::int64_t moment_bytes_per_element) {
  EBB_ASSERT(moment_bytes_per_element > 0);
  return breakpoints(shards, same_optimizer, moment_bytes_per_element, kMiB);
}

std::vector<bool> offloaded_by_fraction(std::span<const Shard> shards, double fraction,
                                        std::int64_t bytes_per_element) {
  EBB_ASSERT(fraction > 0.0 && fraction <= 1.0 && bytes_per_element > 0);
  std::vector<bool> moves(shards.size(), fraction >= 1.0);
  if (fraction >= 1.0) return moves;
  for_each_run(shards, same_optimizer, [&](std::size_t begin, std::size_t end) {
    const std::int64_t total = bytes_of(owned(shards.subspan(begin, end - begin)), bytes_per_element).value;
    // In double, as Python's math.ceil(total * fraction) does it.
    const double target = std::ceil(static_cast<double>(total) * fraction);
    std::int64_t bytes = 0;
    for (std::size_t i = begin; i < end && static_cast<double>(bytes) < target; ++i) {
      moves[i] = true;
      bytes += bytes_of(shards[i].numel, bytes_per_element).value;
    }
  });
  return moves;
}

}  // namespace ebb
