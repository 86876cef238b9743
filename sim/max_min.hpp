// Weighted max-min fair sharing of links by fluid flows (progressive filling).
//
// The system. Link l carries at most C_l. Flow i has weight w_i > 0, loads link l with t_il > 0 for each unit of its
// rate (mostly 1; k where it stands for k equal flows), and uses at most cap_i:
//
//     sum of t_il * x_i over the flows i that use l  <=  C_l      for every link l
//     0 <= x_i <= cap_i                                           for every flow i
//
// Among all feasible x the max-min fair one raises the smallest x_i / w_i as far as it can, then the next smallest, and
// so on. It is unique, and known by its certificate: every flow sits at its cap, or uses a saturated link on which no
// other flow has a larger x / w (Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2; the loads t scale a
// link's row and change neither the argument nor the certificate).
//
// A worked example: an A100 whose link to the host does 25 GB/s each way alone and 36.5 in both directions together,
// and favours device-to-host 2 to 1. Links h2d = 25, d2h = 25, both = 36.5; flow a (weight 1) uses {h2d, both}, flow
// b (weight 2) uses {d2h, both}. A common level s = x / w grows from 0; h2d would fill at 25 / 1, d2h at 25 / 2 = 12.5,
// both at 36.5 / 3 = 12.17: `both` fills first and fixes a = 12.17 and b = 24.33 GB/s.
//
// Not here: which links a copy uses (fabric.hpp), and time.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ebb::sim {

struct LinkUse {
  std::uint32_t link = 0;
  double times = 1.0;
};

/// Links and flows in flat arrays. Rates and capacities in any one unit.
class FlowSystem {
 public:
  void clear();
  /// Precondition: capacity >= 0.
  std::uint32_t add_link(double capacity);
  /// Flows are numbered in the order they are added. Preconditions: links exist, each at most once in `uses`; times > 0
  /// and finite; 0 < weight < infinity; cap >= 0.
  std::uint32_t add_flow(std::span<const LinkUse> uses, double weight = 1.0,
                         double cap = std::numeric_limits<double>::infinity());

  std::size_t links() const { return capacities_.size(); }
  std::size_t flows() const { return flows_.size(); }

  /// Fills rates[i] with the max-min fair rate of flow active[i] when just these flow. A flow that uses no link gets
  /// its cap. Preconditions: active flows exist and differ; rates.size() == active.size(). Allocates only when the
  /// system has grown; O(rounds * uses), rounds <= flows.
  void solve(std::span<const std::uint32_t> active, std::span<double> rates);

 private:
  struct Flow {
    std::uint32_t uses_begin = 0;
    std::uint32_t uses_end = 0;
    double weight = 1.0;
    double cap = 0;
  };

  std::span<const LinkUse> uses_of(std::uint32_t flow) const {
    return {uses_.data() + flows_[flow].uses_begin, uses_.data() + flows_[flow].uses_end};
  }
  double next_level(std::span<const std::uint32_t> active, std::span<const double> rates);
  void fix(std::uint32_t flow, double rate, double& result);

  std::vector<double> capacities_;
  std::vector<Flow> flows_;
  std::vector<LinkUse> uses_;
  // Scratch of solve(), by link.
  std::vector<double> left_;
  std::vector<double> weight_;
};

}  // namespace ebb::sim
