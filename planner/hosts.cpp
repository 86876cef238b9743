#include "planner/hosts.hpp"

#include <algorithm>
#include <map>

#include "models/errors.hpp"
#include "planner/overlap_pieces.hpp"
#include "sim/symmetry.hpp"

namespace ebb {

namespace {

/// Every form of group that a plan of the job may communicate in.
std::vector<sim::GroupForm> group_forms(const Job& job) {
  std::vector<sim::GroupForm> forms = {{1, job.parallel.gpus}};
  for (const bool expert : {false, true}) {
    for (const Group& group : {sharding_group(job, expert), instance_group(job, expert)})
      if (group.members > 1) forms.push_back({group.stride, group.members});
  }
  std::sort(forms.begin(), forms.end());
  forms.erase(std::unique(forms.begin(), forms.end()), forms.end());
  return forms;
}

std::int64_t owned_by(const HostModel& host, const RankSet& ranks) {
  std::int64_t sum = 0;
  for (const std::uint32_t cls : host.class_of_place) sum += ranks.ranks()[host.models[cls]].owned.value;
  return sum;
}

}  // namespace

HostSet::HostSet(const Job& job, const RankSet& ranks) {
  const std::int64_t per_host = std::min(job.cluster.gpus_per_host, job.parallel.gpus);
  const std::vector<sim::GroupForm> forms = group_forms(job);
  std::map<std::vector<std::uint32_t>, std::size_t> known;
  std::vector<std::uint32_t> models;
  for (std::int64_t first = 0; first < job.parallel.gpus; first += per_host) {
    models.clear();
    for (std::int64_t rank = first; rank < std::min(first + per_host, job.parallel.gpus); ++rank)
      models.push_back(static_cast<std::uint32_t>(ranks.model_of(rank)));
    if (!known.emplace(models, hosts_.size()).second) continue;
    HostModel host{
        .first_rank = first, .class_of_place = sim::classes_of_places(models, first, job.cluster, forms), .models = {}};
    for (std::size_t place = 0; place < models.size(); ++place)
      if (host.class_of_place[place] == host.models.size()) host.models.push_back(models[place]);
    hosts_.push_back(std::move(host));
  }

  std::vector<std::int64_t> heaviest(ranks.ranks().size(), -1);
  host_of_.resize(heaviest.size());
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    const std::int64_t owned = owned_by(hosts_[h], ranks);
    for (const std::size_t model : hosts_[h].models) {
      if (owned <= heaviest[model]) continue;
      heaviest[model] = owned;
      host_of_[model] = h;
    }
  }
  for (const std::int64_t owned : heaviest) EBB_ASSERT(owned >= 0);
}

}  // namespace ebb
