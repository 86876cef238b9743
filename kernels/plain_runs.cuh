// Runs of one array as table entries, and a walk over a tile's bits in no particular order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/run_table.cuh"
#include "kernels/runs.hpp"
#include "kernels/values.cuh"

namespace ebb::kernels {

// What a table holds of a run beside its size: where it lies, and the index of its first element.
enum : int { kOffset, kIndex, kPlainArrays };

inline bool plain_runs_are_valid(std::span<const Run> runs) {
  for (const Run& run : runs) {
    if (run.numel < 0) return false;
  }
  return true;
}

/// Runs with elements.
inline std::vector<RunEntry<kPlainArrays>> plain_entries(Type type, const void* base, std::span<const Run> runs) {
  std::vector<RunEntry<kPlainArrays>> entries;
  entries.reserve(runs.size());
  for (const Run& run : runs) {
    if (run.numel == 0) continue;
    entries.push_back(
        {.offset = {run.offset, run.index}, .numel = run.numel, .shift = shift_of(base, run.offset, bytes_of(type))});
  }
  return entries;
}

/// Calls f(i, bits) for each element i of the tile. `x` is the run's first element.
template <Type kType, std::int64_t kTile, class F>
__device__ void walk(const void* x, const Tile& tile, F f) {
  constexpr std::int64_t kRow = kBlock * kWidth;
  constexpr int kRows = kTile / kRow;
  constexpr int kAtOnce = kRows < 8 ? kRows : 8;
  if (tile.whole) {
    const std::int64_t first = tile.begin + threadIdx.x * kWidth;
    for (int row = 0; row < kRows; row += kAtOnce) {
      Vector<kType> v[kAtOnce];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) v[n] = load<kType>(x, first + (row + n) * kRow);
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
#pragma unroll
        for (int k = 0; k < 4; ++k) f(first + (row + n) * kRow + k, element_bits(v[n], k));
      }
    }
    return;
  }
  for (std::int64_t i = tile.begin + threadIdx.x; i < tile.begin + kTile; i += kBlock) {
    if (i >= 0 && i < tile.numel) f(i, elements<kType>(x)[i]);
  }
}

}  // namespace ebb::kernels
