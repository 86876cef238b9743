// Fabric's rates: which flow a lane carries, and how fast flows run against each other.
#include <algorithm>

#include "models/errors.hpp"
#include "sim/fabric.hpp"

namespace ebb::sim {
namespace {

/// What a kernel keeps of HBM whatever else runs: no plan has more than two copies and a collective beside it.
constexpr double kLeastShareOfHbm = 0.25;

}  // namespace

FlowId Fabric::copy_flow(std::size_t cls, Direction d, Memory host, Bytes bytes) const {
  std::size_t variant = copy_flows_ - 1;  // pageable
  if (host == Memory::pinned) {
    variant = 0;
    while (variant + 1 < sizes_.size() && bytes > sizes_[variant]) ++variant;
  }
  return static_cast<FlowId>(cls * flows_per_class_ + static_cast<std::size_t>(d) * copy_flows_ + variant);
}

Fabric::Rate Fabric::rate_of(Work work) {
  if (work == Work::adam) return Rate::adam;
  return work == Work::adam_foreach ? Rate::adam_foreach : Rate::hbm;
}

FlowId Fabric::kernel_flow(std::size_t cls, Work work) const {
  return static_cast<FlowId>(cls * flows_per_class_ + kDirections * copy_flows_ +
                             static_cast<std::size_t>(rate_of(work)));
}

bool Fabric::kernel_shares_hbm(Work work) const {
  return kernel_rates_[static_cast<std::size_t>(rate_of(work))] + busiest_ > hbm_;
}

void Fabric::solve(std::size_t component, std::span<const FlowId> flows, std::span<double> rates) {
  EBB_ASSERT(flows.size() == component_lanes_[component].size() && rates.size() == flows.size());
  active_.clear();
  active_lane_.clear();
  for (std::uint32_t i = 0; i < flows.size(); ++i) {
    rates[i] = 0;
    if (flows[i] == kNoFlow) continue;
    rates[i] = alone_[flows[i]];
    if (in_system_[flows[i]] == kNone) continue;
    active_.push_back(in_system_[flows[i]]);
    active_lane_.push_back(i);
  }
  active_rates_.resize(active_.size());
  system_.solve(active_, active_rates_);
  for (std::size_t i = 0; i < active_.size(); ++i) rates[active_lane_[i]] = active_rates_[i];
  slow_collectives(component, flows, rates);
}

/// Collectives inside the NVLink domain: by the use of the busiest host link among their GPUs.
void Fabric::slow_collectives(std::size_t component, std::span<const FlowId> flows, std::span<double> rates) const {
  const std::vector<std::uint32_t>& lanes = component_lanes_[component];
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i] < 3 * classes_ || flows[i] == kNoFlow) continue;
    const GroupShape& group = groups_[lanes[i] - 3 * classes_];
    if (group.host_link > 0) continue;
    double busiest = 0;
    for (std::size_t j = 0; j < lanes.size(); ++j) {
      if (flows[j] == kNoFlow || lanes[j] >= 3 * classes_ || lanes[j] % 3 >= kDirections) continue;
      if (!std::binary_search(group.classes.begin(), group.classes.end(), lanes[j] / 3)) continue;
      busiest = std::max(busiest, rates[j] / alone_[flows[j]]);
    }
    rates[i] *= 1 - interference_ * busiest;
  }
}

/// A kernel gets what its GPU's copies and collectives leave of HBM.
double Fabric::kernel_rate(FlowId kernel, std::size_t cls, std::span<const double> rates) const {
  double taken =
      rates[lane_index_[copy_lane(cls, Direction::h2d)]] + rates[lane_index_[copy_lane(cls, Direction::d2h)]];
  for (const std::uint32_t g : groups_of_[cls]) {
    const double rate = rates[lane_index_[group_lane(g)]];
    // A flow over the host link stands for all that is on the wire.
    const GroupShape& group = groups_[g];
    taken += kHbmPerWireByte * (group.host_link > 0 ? rate * group.wire / group.host_link : rate);
  }
  return std::min(alone_[kernel], std::max(hbm_ - taken, kLeastShareOfHbm * hbm_));
}

}  // namespace ebb::sim
