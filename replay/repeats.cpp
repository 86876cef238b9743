// Which repeat stands for a run: the part of timing.hpp that needs no device.
#include <algorithm>
#include <numeric>

#include "models/errors.hpp"
#include "replay/timing.hpp"

namespace ebb::replay {

std::size_t median_index(std::span<const Ticks> values) {
  EBB_ASSERT(!values.empty());
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order[(values.size() - 1) / 2];
}

std::vector<Ticks> slowest_of_ranks(std::span<const std::vector<Ticks>> by_rank) {
  EBB_ASSERT(!by_rank.empty());
  std::vector<Ticks> slowest = by_rank[0];
  for (const std::vector<Ticks>& rank : by_rank) {
    EBB_ASSERT(rank.size() == slowest.size());
    for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], rank[i]);
  }
  return slowest;
}

Ticks update_of(const StepSummary& summary) {
  for (const PhaseSummary& phase : summary.phases) {
    if (phase.phase == Phase::step) return phase.duration;
  }
  return {0};
}

}  // namespace ebb::replay
