// Symmetry: which places of a host behave alike, so that one of them is simulated for all.
//
// The argument. Give each place a colour: what it runs. Split colours until any two places of one colour see the same
// number of places of each colour behind their switch, in their socket and in each of their communication groups (an
// equitable partition, by colour refinement). Under max-min sharing places of one colour then have equal rates: the
// rates of the quotient, one flow a colour with its number of places as the load, satisfy the certificate of
// max_min.hpp in the whole system as well, and the fair rates are unique. Equal rates give equal ends, so that the
// places stay alike for ever. Where an op of one tick overtakes another by its place, ties are broken alike within a
// colour. Source: colour refinement (Weisfeiler and Leman, 1968), here over sets of places instead of edges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/cluster.hpp"
#include "models/plan.hpp"

namespace ebb::sim {

/// A kind of communication group on a host: ranks `stride` apart, `members` of them.
struct GroupForm {
  std::int64_t stride = 1;
  std::int64_t members = 1;

  constexpr auto operator<=>(const GroupForm&) const = default;

  /// The lowest global rank of the group that `rank` is in (see ebb::group_of).
  constexpr std::int64_t first_of(std::int64_t rank) const { return rank - rank / stride % members * stride; }
};

/// Classes of places, numbered in order of first appearance. `kinds`: by place, what it runs; place p is global rank
/// first_rank + p. `forms`: the groups that any of the plans has. O(places^2 * forms) or so: places are few.
std::vector<std::uint32_t> classes_of_places(std::span<const std::uint32_t> kinds, std::int64_t first_rank,
                                             const Cluster& cluster, std::span<const GroupForm> forms);

}  // namespace ebb::sim
