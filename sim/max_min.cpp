#include "sim/max_min.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "models/errors.hpp"

namespace ebb::sim {
namespace {

constexpr double kOpen = -1.0;  // the rate of a flow not fixed yet
constexpr double kInfinity = std::numeric_limits<double>::infinity();
using PerLink = std::array<double, kMaxLinks>;

template <class Visit>
void for_each_link(std::uint64_t links, Visit visit) {
  for (; links != 0; links &= links - 1) visit(static_cast<std::size_t>(std::countr_zero(links)));
}

void check(std::span<const double> capacities, std::span<const Flow> flows, std::span<const double> rates) {
  EBB_ASSERT(capacities.size() <= kMaxLinks && rates.size() == flows.size());
  for (const double capacity : capacities) EBB_ASSERT(capacity >= 0);
  for (const Flow& flow : flows) {
    EBB_ASSERT(flow.weight > 0 && flow.weight < kInfinity && flow.cap >= 0);
    EBB_ASSERT(static_cast<std::size_t>(std::bit_width(flow.links)) <= capacities.size());
  }
}

/// A flow leaves the race at `rate`; what its links have left shrinks. Rounding may take a link a hair below 0.
void fix(const Flow& flow, double rate, double& result, PerLink& left) {
  result = rate;
  for_each_link(flow.links, [&](std::size_t l) { left[l] = std::max(0.0, left[l] - rate); });
}

}  // namespace

// Progressive filling. Each round finds the level s at which the first link would fill if all open flows grew to s * w.
// Flows whose cap lies below that level are fixed at their caps: taking less than s * w each, they can only raise the
// level for the others. Only when there is none, the flows on the links that fill at s are fixed at s * w.
// Weight sums are recomputed each round instead of reduced: an almost empty link must not keep a rounding remainder.
void max_min(std::span<const double> capacities, std::span<const Flow> flows, std::span<double> rates) {
  check(capacities, flows, rates);
  PerLink left;
  std::copy(capacities.begin(), capacities.end(), left.begin());
  std::fill(rates.begin(), rates.end(), kOpen);

  for (std::size_t open = flows.size(); open > 0;) {
    PerLink weight{};
    std::uint64_t used = 0;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (rates[i] != kOpen) continue;
      used |= flows[i].links;
      for_each_link(flows[i].links, [&](std::size_t l) { weight[l] += flows[i].weight; });
    }
    double level = kInfinity;
    for_each_link(used, [&](std::size_t l) { level = std::min(level, left[l] / weight[l]); });

    const std::size_t open_before = open;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (rates[i] != kOpen || flows[i].cap > flows[i].weight * level) continue;
      fix(flows[i], flows[i].cap, rates[i], left);
      --open;
    }
    if (open < open_before) continue;

    std::uint64_t filled = 0;
    for_each_link(used, [&](std::size_t l) {
      if (left[l] / weight[l] <= level) filled |= std::uint64_t{1} << l;
    });
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (rates[i] != kOpen || (flows[i].links & filled) == 0) continue;
      fix(flows[i], flows[i].weight * level, rates[i], left);
      --open;
    }
  }
}

}  // namespace ebb::sim
