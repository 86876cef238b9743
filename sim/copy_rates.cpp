#include "sim/copy_rates.hpp"

#include <algorithm>
#include <array>

#include "models/errors.hpp"
#include "sim/fabric.hpp"

namespace ebb::sim {

CopyRates copy_rates(const Cluster& cluster, const Sharing& sharing) {
  EBB_ASSERT(sharing.ranks_per_host >= 1);
  const std::vector<std::uint32_t> classes(static_cast<std::size_t>(sharing.ranks_per_host), 0);
  Fabric fabric;
  fabric.build(cluster, classes, 1, {});
  const auto solve = [&](FlowId in, FlowId out) {
    const std::array<FlowId, 3> flows = {in, out, kNoFlow};
    std::array<double, 3> rates{};
    fabric.solve(0, flows, rates);
    for (double& rate : rates) rate *= static_cast<double>(kTicksPerSecond);
    return rates;
  };
  std::vector<Bytes> sizes = {{0}};
  for (const SizedRate& point : cluster.host_link.both_by_size.value) sizes.push_back(point.bytes);
  CopyRates rates;
  for (const Bytes size : sizes) {
    const FlowId in = fabric.copy_flow(0, Direction::h2d, Memory::pinned, size);
    const FlowId out = fabric.copy_flow(0, Direction::d2h, Memory::pinned, size);
    rates.h2d.value = std::max(rates.h2d.value, solve(in, kNoFlow)[0]);
    rates.d2h.value = std::max(rates.d2h.value, solve(kNoFlow, out)[1]);
    const auto both = solve(in, out);
    rates.both.value = std::max(rates.both.value, both[0] + both[1]);
  }
  return rates;
}

}  // namespace ebb::sim
