// The table of runs that travels in a kernel's parameters, and how a block finds its piece of work in it.
//
// Work is cut into tiles, one a block. Tile j of a run holds its elements [j T - shift, (j + 1) T - shift), clipped to
// the run; `shift` (0 to 3) is the place of its first element in a vector of four, the same for all arrays of the run,
// so that tiles and the vectors in them are aligned. A run whose arrays disagree has shift kUnaligned and is worked on
// element by element.
//
// A block finds its run through a coarse index: tiles are counted through all runs, and for every 2^group_shift of them
// the table says which run holds the first and which the next group's first. Mostly that is one run and the search is
// over; where runs are short, a bisection between the two follows. (Bisecting the whole table, nine reads one after
// another in every warp, cost up to 15 % of a kernel's time: reads at an index fill the path to constant memory.)
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace ebb::kernels {

inline constexpr int kBlock = 128;               // threads a block
inline constexpr std::int64_t kWidth = 4;        // elements in a vector
inline constexpr int kMaxRuns = 512;             // CUDA allows 32,764 bytes of parameters from 12.1 on
inline constexpr int kFewRuns = 32;              // a smaller table for most launches: its bytes travel with each
inline constexpr std::uint8_t kUnaligned = 255;  // no common shift
inline constexpr int kGroups = 256;              // of tiles in the coarse index

/// One run on its way into a table.
template <int kArrays>
struct RunEntry {
  std::int64_t offset[kArrays];  // bytes after each array's base
  std::int64_t numel;
  std::uint8_t shift;
};

/// A block's piece of one run: elements [begin, begin + tile) clipped to [0, numel). `whole`: nothing is clipped and
/// vectors are aligned.
struct Tile {
  int run;
  std::int64_t number;  // of the tile within its run
  std::int64_t begin;
  std::int64_t numel;  // of the run
  bool whole;
};

/// Runs that hold the first tile of a group and of the next one.
struct alignas(4) GroupRuns {
  std::uint16_t first;
  std::uint16_t last;
};

template <int kArrays, int kRuns>
struct RunTable {
  std::int64_t offset[kRuns][kArrays];
  std::int64_t numel[kRuns];
  std::uint32_t first_tile[kRuns];
  std::uint8_t shift[kRuns];
  GroupRuns groups[kGroups];
  std::int32_t group_shift;

  template <class T>
  __device__ T* at(T* base, int run, int array) const {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return reinterpret_cast<T*>(reinterpret_cast<Byte*>(base) + offset[run][array]);
  }

  /// The piece of block `block`; T is the number of elements in a tile.
  template <std::int64_t T>
  __device__ Tile find(std::uint32_t block) const {
    const GroupRuns group = groups[block >> group_shift];
    int low = group.first;
    for (int high = group.last + 1; high - low > 1;) {
      const int middle = (low + high) / 2;
      (first_tile[middle] <= block ? low : high) = middle;
    }
    Tile tile{.run = low, .number = block - first_tile[low], .begin = 0, .numel = numel[low], .whole = false};
    const bool aligned = shift[low] != kUnaligned;
    tile.begin = tile.number * T - (aligned ? shift[low] : 0);
    tile.whole = aligned && tile.begin >= 0 && tile.begin + T <= tile.numel;
    return tile;
  }
};

/// The place in a vector of the element at `address`, of `bytes` bytes (1, 2 or 4).
inline std::uint8_t shift_of(const void* base, std::int64_t offset, std::int64_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(offset);
  return static_cast<std::uint8_t>((address >> (bytes >> 1)) % kWidth);
}
inline std::uint8_t common_shift(std::uint8_t a, std::uint8_t b) { return a == b ? a : kUnaligned; }

inline std::int64_t tiles_of(std::int64_t numel, std::uint8_t shift, std::int64_t tile) {
  return (numel + (shift == kUnaligned ? 0 : shift) + tile - 1) / tile;
}

/// Fills the coarse index of a table of `runs` runs with `tiles` tiles.
template <int kArrays, int kRuns>
void index_tiles(RunTable<kArrays, kRuns>& table, int runs, std::int64_t tiles) {
  table.group_shift = 0;
  while ((tiles - 1) >> table.group_shift >= kGroups) ++table.group_shift;
  int run = 0;
  for (std::int64_t group = 0; group << table.group_shift < tiles; ++group) {
    const std::int64_t tile = group << table.group_shift;
    while (run + 1 < runs && table.first_tile[run + 1] <= tile) ++run;
    table.groups[group].first = static_cast<std::uint16_t>(run);
    if (group > 0) table.groups[group - 1].last = static_cast<std::uint16_t>(run);
  }
  table.groups[(tiles - 1) >> table.group_shift].last = static_cast<std::uint16_t>(runs - 1);
}

/// Hands entries[begin, end) to `launch` as a table of kRuns entries. What a block never reads is left as it is.
template <int kRuns, int kArrays, class Launch>
int launch_table(const std::vector<RunEntry<kArrays>>& entries, std::size_t begin, std::size_t end, std::int64_t tile,
                 Launch& launch) {
  RunTable<kArrays, kRuns> table;
  std::int64_t tiles = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const RunEntry<kArrays>& entry = entries[i];
    const std::size_t k = i - begin;
    std::memcpy(table.offset[k], entry.offset, sizeof entry.offset);
    table.numel[k] = entry.numel;
    table.shift[k] = entry.shift;
    table.first_tile[k] = static_cast<std::uint32_t>(tiles);
    tiles += tiles_of(entry.numel, entry.shift, tile);
  }
  index_tiles(table, static_cast<int>(end - begin), tiles);
  return launch(table, static_cast<unsigned>(tiles));
}

/// Launches `kernel` over blocks of kBlock threads. The arguments are the kernel's own types: they are passed where
/// they lie, whereas <<<>>> would copy a table of 27 KB once more.
template <class... Parameters>
int launch_kernel(void (*kernel)(Parameters...), unsigned blocks, cudaStream_t stream,
                  const std::type_identity_t<Parameters>&... arguments) {
  const void* pointers[] = {&arguments...};
  const cudaError_t code = cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(kBlock),
                                            const_cast<void**>(pointers), 0, stream);
  if (code != cudaSuccess) (void)cudaGetLastError();  // it is returned: the next call must not find it
  return code;
}

/// Launches over all entries, which have elements, in order: launch(table, blocks) once for every kMost of them. Stops
/// at the first launch that fails and returns its error. Up to kFew runs travel in a table of so many; kFew = kMost:
/// there is but the large one, which halves what is compiled and costs some microseconds of the host's time a launch.
template <int kFew = kFewRuns, int kMost = kMaxRuns, int kArrays, class Launch>
int launch_runs(const std::vector<RunEntry<kArrays>>& entries, std::int64_t tile, Launch launch) {
  constexpr std::int64_t kMaxTiles = INT32_MAX;  // the grid's limit
  for (std::size_t begin = 0; begin < entries.size();) {
    std::size_t end = begin;
    for (std::int64_t tiles = 0; end < entries.size() && end - begin < kMost; ++end) {
      tiles += tiles_of(entries[end].numel, entries[end].shift, tile);
      if (tiles > kMaxTiles) break;
    }
    if (end == begin) return cudaErrorInvalidValue;  // a run beyond the grid: over 10^12 elements
    const int code = end - begin <= kFew ? launch_table<kFew>(entries, begin, end, tile, launch)
                                         : launch_table<kMost>(entries, begin, end, tile, launch);
    if (code != cudaSuccess) return code;
    begin = end;
  }
  return cudaSuccess;
}

}  // namespace ebb::kernels
