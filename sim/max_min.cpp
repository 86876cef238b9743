#include "sim/max_min.hpp"

#include <algorithm>

#include "models/errors.hpp"

namespace ebb::sim {
namespace {

constexpr double kOpen = -1.0;  // the rate of a flow not fixed yet
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

void FlowSystem::clear() {
  capacities_.clear();
  flows_.clear();
  uses_.clear();
}

std::uint32_t FlowSystem::add_link(double capacity) {
  EBB_ASSERT(capacity >= 0);
  capacities_.push_back(capacity);
  return static_cast<std::uint32_t>(capacities_.size() - 1);
}

std::uint32_t FlowSystem::add_flow(std::span<const LinkUse> uses, double weight, double cap) {
  EBB_ASSERT(weight > 0 && weight < kInfinity && cap >= 0);
  const auto begin = static_cast<std::uint32_t>(uses_.size());
  for (const LinkUse& use : uses) {
    EBB_ASSERT(use.link < capacities_.size() && use.times > 0 && use.times < kInfinity);
    uses_.push_back(use);
  }
  flows_.push_back({begin, static_cast<std::uint32_t>(uses_.size()), weight, cap});
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

/// A flow leaves the race at `rate`; what its links have left shrinks. Rounding may take a link a hair below 0.
void FlowSystem::fix(std::uint32_t flow, double rate, double& result) {
  result = rate;
  for (const LinkUse& use : uses_of(flow)) left_[use.link] = std::max(0.0, left_[use.link] - use.times * rate);
}

/// The level s at which the first link would fill if all open flows grew to s * w. Weight sums are made anew each
/// round, not reduced: an almost empty link must not keep a rounding remainder.
double FlowSystem::next_level(std::span<const std::uint32_t> active, std::span<const double> rates) {
  for (std::size_t i = 0; i < active.size(); ++i) {
    if (rates[i] != kOpen) continue;
    for (const LinkUse& use : uses_of(active[i])) weight_[use.link] = 0;
  }
  double level = kInfinity;
  for (std::size_t i = 0; i < active.size(); ++i) {
    if (rates[i] != kOpen) continue;
    for (const LinkUse& use : uses_of(active[i])) weight_[use.link] += use.times * flows_[active[i]].weight;
  }
  for (std::size_t i = 0; i < active.size(); ++i) {
    if (rates[i] != kOpen) continue;
    for (const LinkUse& use : uses_of(active[i])) level = std::min(level, left_[use.link] / weight_[use.link]);
  }
  return level;
}

// Progressive filling. Each round finds the next level. Flows whose cap lies below it are fixed at their caps: taking
// less than s * w each, they can only raise the level for the others. Only when there is none, the flows on the links
// that fill at s are fixed at s * w.
void FlowSystem::solve(std::span<const std::uint32_t> active, std::span<double> rates) {
  EBB_ASSERT(rates.size() == active.size());
  left_.assign(capacities_.begin(), capacities_.end());
  weight_.resize(capacities_.size());
  std::fill(rates.begin(), rates.end(), kOpen);

  for (std::size_t open = active.size(); open > 0;) {
    const double level = next_level(active, rates);
    const std::size_t open_before = open;
    for (std::size_t i = 0; i < active.size(); ++i) {
      const Flow& flow = flows_[active[i]];
      if (rates[i] != kOpen || flow.cap > flow.weight * level) continue;
      fix(active[i], flow.cap, rates[i]);
      --open;
    }
    if (open < open_before) continue;

    // Which links fill is decided before any of their flows is fixed: that changes what they have left.
    for (std::size_t i = 0; i < active.size(); ++i) {
      if (rates[i] != kOpen) continue;
      for (const LinkUse& use : uses_of(active[i])) {
        if (weight_[use.link] > 0 && left_[use.link] / weight_[use.link] <= level) weight_[use.link] = kOpen;
      }
    }
    for (std::size_t i = 0; i < active.size(); ++i) {
      if (rates[i] != kOpen) continue;
      const auto uses = uses_of(active[i]);
      if (std::none_of(uses.begin(), uses.end(), [&](const LinkUse& use) { return weight_[use.link] == kOpen; })) {
        continue;
      }
      fix(active[i], flows_[active[i]].weight * level, rates[i]);
      --open;
    }
  }
}

}  // namespace ebb::sim
