#include "sim/copy_rates.hpp"

#include "models/errors.hpp"
#include "sim/max_min.hpp"

namespace ebb::sim {
namespace {

enum Link : unsigned { kH2d, kD2h, kBoth, kHostH2d, kHostD2h, kHostBoth, kLinks };

constexpr std::uint64_t bit(Link link) { return std::uint64_t{1} << link; }

}  // namespace

CopyRates copy_rates(const HostLink& link, const Sharing& sharing) {
  EBB_ASSERT(sharing.ranks_per_host >= 1);
  const double ranks = static_cast<double>(sharing.ranks_per_host);
  std::array<double, kLinks> capacities{};
  capacities[kH2d] = link.h2d.value.value;
  capacities[kD2h] = link.d2h.value.value;
  capacities[kBoth] = link.both.value.value;
  capacities[kHostH2d] = capacities[kHostD2h] = link.host_one_way.value.value / ranks;
  capacities[kHostBoth] = link.host_both.value.value / ranks;
  for (const double capacity : capacities) EBB_ASSERT(capacity > 0);

  const std::array<Flow, kDirections> flows = {
      Flow{.links = bit(kH2d) | bit(kBoth) | bit(kHostH2d) | bit(kHostBoth)},
      Flow{.links = bit(kD2h) | bit(kBoth) | bit(kHostD2h) | bit(kHostBoth), .weight = link.d2h_weight.value}};

  CopyRates rates;
  for (unsigned set = 1; set < rates.bytes_per_tick.size(); ++set) {
    std::array<Flow, kDirections> active{};
    std::array<double, kDirections> solved{};
    std::size_t count = 0;
    for (unsigned d = 0; d < kDirections; ++d) {
      if ((set >> d & 1U) != 0) active[count++] = flows[d];
    }
    max_min(capacities, std::span(active).first(count), std::span(solved).first(count));
    count = 0;
    for (unsigned d = 0; d < kDirections; ++d) {
      if ((set >> d & 1U) == 0) continue;
      rates.bytes_per_tick[set][d] = solved[count++] / static_cast<double>(kTicksPerSecond);
    }
  }
  return rates;
}

}  // namespace ebb::sim
