#include "planner/host_demand.hpp"

#include <algorithm>
#include <vector>

#include "planner/life_host.hpp"

namespace ebb {

namespace {

/// The phases that may hold most: the others hold what one of these does, or less.
std::vector<Phase> deciding_phases(Start start) {
  std::vector<Phase> phases = {Phase::step, Phase::init};
  if (start != Start::fresh) phases.push_back(Phase::load);
  phases.push_back(Phase::save);
  return phases;
}

}  // namespace

HostDemand host_demand(const Job& job, const HostSet& hosts, std::span<const RankModel> ranks,
                       const Candidate& candidate, Start start) {
  std::vector<HostShare> shares;  // by model
  shares.reserve(ranks.size());
  for (const RankModel& rank : ranks) shares.push_back(host_share(rank, candidate));
  HostDemand demand;
  std::vector<Bytes> held;
  for (const HostModel& host : hosts.hosts())
    for (const Phase phase : deciding_phases(start)) {
      Bytes sum{0};
      held.clear();
      for (std::size_t place = 0; place < host.class_of_place.size(); ++place) {
        const std::size_t model = host.models[host.class_of_place[place]];
        const HostUse use =
            host_use(ranks[model], shares[model], host.first_rank + static_cast<std::int64_t>(place), phase, start);
        sum += use.pinned.held + use.pageable;
        held.push_back(use.pinned.held);
      }
      if (sum > demand.per_host) {
        demand.per_host = sum;
        demand.decides = phase;
      }
      if (phase != Phase::step) continue;
      Bytes pinned{0};
      for (const Bytes bytes : held) {
        pinned += bytes;
        demand.pinned_per_rank = std::max(demand.pinned_per_rank, bytes);
      }
      demand.pinned_per_host = std::max(demand.pinned_per_host, pinned);
      for (const Bytes node : sim::bytes_per_node(held, job.cluster))
        demand.pinned_per_socket = std::max(demand.pinned_per_socket, node);
    }
  return demand;
}

}  // namespace ebb
