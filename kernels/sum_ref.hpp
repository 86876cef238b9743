// The fixed-order sum (sum_order.hpp) on the CPU.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/sum_order.hpp"

namespace ebb::kernels {

/// x[0] + ... + x[count - 1] as a warp's shuffles add them; count is a power of two. Overwrites x.
inline double fold(double* x, std::int64_t count) {
  for (std::int64_t offset = count / 2; offset > 0; offset /= 2) {
    for (std::int64_t i = 0; i < offset; ++i) x[i] += x[i + offset];
  }
  return x[0];
}

/// Folds kFold at a time, then the results.
inline double fold_block(double* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count / kFold; ++i) x[i] = fold(x + i * kFold, kFold);
  return fold(x, count / kFold);
}

/// The sum of one tile.
class TileSum {
 public:
  void add(std::int64_t element, double value) { lanes_[static_cast<std::size_t>(element % kSumLanes)] += value; }
  double total() const {
    std::array<double, kSumLanes / 4> threads;
    for (std::size_t t = 0; t < threads.size(); ++t) {
      threads[t] = (lanes_[4 * t] + lanes_[4 * t + 1]) + (lanes_[4 * t + 2] + lanes_[4 * t + 3]);
    }
    return fold_block(threads.data(), threads.size());
  }

 private:
  std::array<double, kSumLanes> lanes_{};
};

inline double final_sum_ref(const std::vector<double>& tiles) {
  std::array<double, kFinalLanes> lanes{};
  for (std::size_t i = 0; i < tiles.size(); ++i) lanes[i % lanes.size()] += tiles[i];
  return fold_block(lanes.data(), lanes.size());
}

}  // namespace ebb::kernels
