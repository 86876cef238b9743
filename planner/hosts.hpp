// HostSet: the hosts of a job that differ, and which ranks they carry.
//
// Ranks of one host share links and memory, so they are simulated together. Ranks are dealt out along the hosts in
// order, as launchers do. Two hosts whose places carry the same rank models behave alike; so do places of one host that
// the others cannot tell apart (sim/symmetry.hpp): each class is simulated once.
#pragma once

#include <cstdint>
#include <vector>

#include "models/job.hpp"
#include "planner/ranks.hpp"

namespace ebb {

struct HostModel {
  std::int64_t first_rank = 0;                // of one such host; place p is first_rank + p
  std::vector<std::uint32_t> class_of_place;  // by place
  std::vector<std::size_t> models;            // by class: into RankSet::ranks()

  /// All its ranks do the same at equivalent places.
  bool alike() const { return models.size() == 1; }
};

class HostSet {
 public:
  HostSet(const Job& job, const RankSet& ranks);

  /// Every distinct host, in order of first appearance. Never empty.
  const std::vector<HostModel>& hosts() const { return hosts_; }

  /// The host with that rank model whose ranks own most elements: the others press hardest on what it shares.
  std::size_t host_of(std::size_t model) const { return host_of_[model]; }

 private:
  std::vector<HostModel> hosts_;
  std::vector<std::size_t> host_of_;  // by model
};

}  // namespace ebb
