// How torch's allocators round: what one tensor costs in "allocated" device bytes and in pinned host bytes.
#pragma once

#include <bit>

#include "models/units.hpp"

namespace ebb::memory {

/// Device bytes the caching allocator counts as allocated for a fresh tensor of `bytes`: 512-byte rounding, and the
/// rest of a fresh large segment (rounded to 2 MiB from 10 MiB on) when it is too small to split off (<= 1 MiB).
/// Source: torch c10/cuda/CUDACachingAllocator.cpp; measured: 100,000,001 B -> 100,663,296; 10,485,765 -> 10,486,272.
constexpr Bytes allocated_bytes(Bytes bytes) {
  const std::int64_t rounded = round_up(bytes.value > 0 ? bytes.value : 0, 512);
  constexpr std::int64_t mib = 1 << 20;
  if (rounded < 10 * mib) return {rounded};
  const std::int64_t segment = round_up(rounded, 2 * mib);
  return {segment - rounded <= mib ? segment : rounded};
}

/// Pinned host bytes of one block: the next power of two (torch's CachingHostAllocator; measured: 104,857,600 B ->
/// 134,217,728). 0 stays 0.
constexpr Bytes pinned_block_bytes(Bytes bytes) {
  if (bytes.value <= 0) return {0};
  return {static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes.value)))};
}

}  // namespace ebb::memory
