// Which repeat stands for a run: the part of timing.hpp that needs no device.
#include <algorithm>

#include "models/errors.hpp"
#include "replay/timing.hpp"

namespace ebb::replay {

std::size_t median_index(std::span<const Ticks> values) {
  EBB_ASSERT(!values.empty());
  std::vector<Ticks> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return static_cast<std::size_t>(std::find(values.begin(), values.end(), *middle) - values.begin());
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
