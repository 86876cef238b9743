#include "sim/symmetry.hpp"

#include <algorithm>
#include <map>

#include "models/errors.hpp"

namespace ebb::sim {
namespace {

/// Sets of places that share something; each place is in one set of each sort.
using Sets = std::vector<std::vector<std::int64_t>>;  // sort x place: the number of the place's set

Sets sets_of(std::size_t places, std::int64_t first_rank, const Cluster& cluster, std::span<const GroupForm> forms) {
  Sets sets(2 + forms.size(), std::vector<std::int64_t>(places));
  for (std::size_t p = 0; p < places; ++p) {
    const auto place = static_cast<std::int64_t>(p);
    sets[0][p] = place / cluster.topology.gpus_per_switch;
    sets[1][p] = socket_of(cluster, place);
    for (std::size_t f = 0; f < forms.size(); ++f) {
      sets[2 + f][p] = forms[f].first_of(first_rank + place);
    }
  }
  return sets;
}

/// What a place sees: its colour, then for each sort of sets the colours of the others in its set.
std::vector<std::uint32_t> view(std::size_t p, const Sets& sets, const std::vector<std::uint32_t>& colour) {
  std::vector<std::uint32_t> seen = {colour[p]};
  for (const auto& set_of : sets) {
    const std::size_t begin = seen.size();
    for (std::size_t q = 0; q < colour.size(); ++q)
      if (set_of[q] == set_of[p]) seen.push_back(colour[q]);
    std::sort(seen.begin() + static_cast<std::ptrdiff_t>(begin), seen.end());
    seen.push_back(0xffffffffU);  // end of the set
  }
  return seen;
}

}  // namespace

std::vector<std::uint32_t> classes_of_places(std::span<const std::uint32_t> kinds, std::int64_t first_rank,
                                             const Cluster& cluster, std::span<const GroupForm> forms) {
  EBB_ASSERT(cluster.topology.gpus_per_switch > 0 && cluster.host.sockets > 0);
  const Sets sets = sets_of(kinds.size(), first_rank, cluster, forms);
  std::vector<std::uint32_t> colour(kinds.begin(), kinds.end());
  for (std::size_t colours = 0;;) {
    std::map<std::vector<std::uint32_t>, std::uint32_t> number;
    std::vector<std::uint32_t> finer(kinds.size());
    for (std::size_t p = 0; p < kinds.size(); ++p)
      finer[p] = number.emplace(view(p, sets, colour), static_cast<std::uint32_t>(number.size())).first->second;
    colour = finer;
    if (number.size() == colours) return colour;  // a colour never joins another: as many are the same
    colours = number.size();
  }
}

}  // namespace ebb::sim
