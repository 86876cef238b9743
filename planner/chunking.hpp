// How shards are packed into chunks: `chunked` by elements (restarting at every parameter group and chained
// optimizer), `windowed` by MiB of moments (spanning groups). Shards are atomic in both.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/units.hpp"
#include "planner/layout.hpp"

namespace ebb {

/// Shards [first, first + count) of the list that was packed.
struct Chunk {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  Numel numel{0};
};

/// Greedy packing up to `limit` elements; a larger shard is a chunk of its own. Restarts at group and optimizer
/// boundaries. limit <= 0: one chunk per group. Bound: max(limit, largest shard).
/// Source: Megatron-LM pull request 6544, _iter_chunks_by_numel.
std::vector<Chunk> chunk_by_numel(std::span<const Shard> shards, Numel limit);

/// Greedy packing up to `chunk_size_mb` MiB of moments; spans groups of one chained optimizer (each optimizer has its
/// own manager). 0: one chunk per optimizer. Source: Megatron-LM dev #6244.
std::vector<Chunk> chunk_by_moments(std::span<const Shard> shards, std::int64_t chunk_size_mb,
                                    std::int64_t moment_bytes_per_element);

/// Every limit at which chunk_by_numel's result changes, ascending: first 1, the finest packing, then each limit whose
/// packing differs from that of the limit before it; the last packs every group into one chunk. Between two of them
/// nothing changes, so these are all the limits worth trying. Empty for no shards. Never capped: O(breakpoints x
/// chunks x log shards), 8 ms for 1,000 different shards in one group (6,615 breakpoints), microseconds for real ranks.
std::vector<Numel> numel_breakpoints(std::span<const Shard> shards);

/// The same for chunk_by_moments, in whole MiB.
std::vector<std::int64_t> moment_breakpoints_mb(std::span<const Shard> shards, std::int64_t moment_bytes_per_element);

/// `windowed`: which shards move when only `fraction` of the state bytes is offloaded: bundles in order until
/// ceil(fraction * total) bytes are reached. result[i] tells whether shards[i] moves.
std::vector<bool> offloaded_by_fraction(std::span<const Shard> shards, double fraction, std::int64_t bytes_per_element);

}  // namespace ebb
