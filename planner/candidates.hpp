// What the search tries: every policy, and for each the chunk sizes that give a different packing.
//
// A packing changes only at the breakpoints of chunking.hpp, so one value of each interval [breakpoint, next) stands
// for all of it. The roundest is taken, so that the flag reads 400000000 and not 398458880. The intervals of several
// ranks are intersected: inside one, the packing of none of them changes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/job.hpp"
#include "models/policy.hpp"
#include "planner/layout.hpp"

namespace ebb {

/// The size of production runs, which every table shows.
inline constexpr Numel kProductionNumel{1'000'000'000};

/// Up to so many shards of a rank, every packing is tried; their number grows up to quadratically. With more, sizes
/// come from the grid 1, 2, 5 x 10^k elements and from powers of two in MiB.
inline constexpr std::size_t kMostPackedShards = 4096;
/// ... and of no more than so many sizes: beyond, those are left out that are nearest to their neighbours, as a ratio.
/// (512 sizes from 1e6 to 1e10 elements are 1.8 % apart.)
inline constexpr std::size_t kMostNumels = 512;
inline constexpr std::size_t kMostSizesMb = 128;  // for each fraction
/// A schedule of slots has at most so many chunks: smaller slots cost more than they save.
inline constexpr std::int64_t kMostSlotChunks = 1 << 14;

/// The multiple of the largest power of `base` inside [low, high), the smallest of them. Precondition: 0 <= low < high,
/// base >= 2.
std::int64_t roundest(std::int64_t low, std::int64_t high, std::int64_t base);

/// One round value, 1 at least, for each interval between neighbouring breakpoints and one from the last on. Powers of
/// 10 decide what is round.
std::vector<Numel> round_numels(const std::vector<Numel>& breakpoints);
/// The same in whole MiB; powers of 2 decide, and 0 (one window over everything) comes first.
std::vector<std::int64_t> round_sizes_mb(std::vector<std::int64_t> breakpoints);

/// All candidates, policy by policy in the order of kPolicies, then by fraction, slots and chunk size ascending.
/// `ranks`: shards of the ranks whose packings decide. What job.offload fixes limits the list; `resident`, with which
/// everything is compared, is always first, and chunked always holds kProductionNumel unless the job fixes another.
/// Fractions are multiples of 0.05, slots 2 to 4, slot sizes powers of two from 1 Mi elements to the rank's share.
std::vector<Candidate> candidates_of(const Job& job, std::span<const std::vector<Shard>> ranks);

}  // namespace ebb
