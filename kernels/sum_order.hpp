// The order in which long sums of doubles are taken, by kernels and references alike.
//
// A tile of kSumTile elements is summed by kSumLanes lanes: element e of the tile goes to lane e mod kSumLanes, in
// ascending order. Four lanes side by side are a thread's: (l0 + l1) + (l2 + l3). The 128 threads' sums are folded: 32
// at a time, then the four results. The tiles' sums, in order, are summed by kFinalLanes lanes and folded the same way.
#pragma once

#include <cstdint>

namespace ebb::kernels {

inline constexpr std::int64_t kSumTile = 8192;
inline constexpr std::int64_t kSumLanes = 512;
inline constexpr std::int64_t kFinalLanes = 1024;
inline constexpr int kFold = 32;  // a warp

constexpr std::int64_t sum_tiles(std::int64_t numel) { return (numel + kSumTile - 1) / kSumTile; }

}  // namespace ebb::kernels
