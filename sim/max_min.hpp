// Weighted max-min fair sharing of links by fluid flows (progressive filling).
//
// The system. Link l carries at most C_l. Flow i has weight w_i > 0, crosses a set of links, and uses at most cap_i:
//
//     sum of x_i over the flows i that cross l  <=  C_l      for every link l
//     0 <= x_i <= cap_i                                      for every flow i
//
// Among all feasible x the max-min fair one raises the smallest x_i / w_i as far as it can, then the next smallest, and
// so on. It is unique, and known by its certificate: every flow sits at its cap, or crosses a saturated link on which
// no other flow has a larger x / w (Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2).
//
// A worked example: an A100 whose link to the host does 25 GB/s each way alone and 36.5 in both directions together,
// and favours device-to-host 2 to 1. Links h2d = 25, d2h = 25, both = 36.5; flow a (weight 1) crosses {h2d, both}, flow
// b (weight 2) crosses {d2h, both}. A common level s = x / w grows from 0; h2d would fill at 25 / 1, d2h at 25 / 2
// = 12.5, both at 36.5 / 3 = 12.17: `both` fills first and fixes a = 12.17 and b = 24.33 GB/s.
//
// Not here: which links a copy crosses (copy_rates.hpp), and time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace ebb::sim {

inline constexpr std::size_t kMaxLinks = 64;

struct Flow {
  std::uint64_t links = 0;  // bit l: crosses link l
  double weight = 1.0;
  double cap = std::numeric_limits<double>::infinity();
};

/// Fills rates[i] with the max-min fair rate of flows[i], in the unit of `capacities` (any). A flow that crosses no
/// link gets its cap. Preconditions: at most kMaxLinks links; capacities >= 0; 0 < weight < infinity; cap >= 0; flows
/// cross existing links only; rates.size() == flows.size(). Allocates nothing; O(rounds x flows x links), rounds <=
/// flows.
void max_min(std::span<const double> capacities, std::span<const Flow> flows, std::span<double> rates);

}  // namespace ebb::sim
