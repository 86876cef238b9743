// Max-min sharing: hand-solved systems, the certificate on 100,000 random systems, and brute force on tiny ones.
#include "sim/max_min.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using ebb::sim::FlowSystem;
using ebb::sim::LinkUse;

namespace {

/// A flow as these tests write it: the links it uses as a bit set, each loaded `times` for a unit of its rate.
struct Flow {
  std::uint64_t links = 0;
  double weight = 1.0;
  double cap = std::numeric_limits<double>::infinity();
  double times = 1.0;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> solve(const std::vector<double>& capacities, const std::vector<Flow>& flows) {
  FlowSystem system;
  for (const double capacity : capacities) system.add_link(capacity);
  std::vector<std::uint32_t> active;
  for (const Flow& flow : flows) {
    std::vector<LinkUse> uses;
    for (std::uint32_t l = 0; l < capacities.size(); ++l)
      if ((flow.links >> l & 1U) != 0) uses.push_back({l, flow.times});
    active.push_back(system.add_flow(uses, flow.weight, flow.cap));
  }
  std::vector<double> rates(flows.size());
  system.solve(active, rates);
  return rates;
}

double load(std::size_t link, const std::vector<Flow>& flows, const std::vector<double>& rates) {
  double sum = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if ((flows[i].links >> link & 1U) != 0) sum += flows[i].times * rates[i];
  }
  return sum;
}

/// Feasible, and every flow sits at its cap or crosses a saturated link on which its rate / weight is maximal. This
/// characterises the max-min fair point (Bertsekas and Gallager, section 6.5.2), whatever computed it.
bool certified(const std::vector<double>& capacities, const std::vector<Flow>& flows,
               const std::vector<double>& rates) {
  constexpr double kSlack = 1e-9;
  std::vector<bool> saturated(capacities.size());
  for (std::size_t l = 0; l < capacities.size(); ++l) {
    const double sum = load(l, flows, rates);
    if (sum > capacities[l] * (1 + kSlack)) return false;
    saturated[l] = sum >= capacities[l] * (1 - kSlack);
  }
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (rates[i] < 0 || rates[i] > flows[i].cap) return false;
    bool justified = rates[i] == flows[i].cap;
    for (std::size_t l = 0; l < capacities.size() && !justified; ++l) {
      if ((flows[i].links >> l & 1U) == 0 || !saturated[l]) continue;
      justified = true;
      for (std::size_t j = 0; j < flows.size(); ++j) {
        if ((flows[j].links >> l & 1U) == 0) continue;
        justified &= rates[j] / flows[j].weight <= rates[i] / flows[i].weight * (1 + kSlack);
      }
    }
    if (!justified) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("max-min: equal flows halve a link, a cap leaves the rest to the other") {
  REQUIRE(solve({10}, {{.links = 1}, {.links = 1}}) == std::vector<double>{5, 5});
  REQUIRE(solve({10}, {{.links = 1, .cap = 2}, {.links = 1}}) == std::vector<double>{2, 8});
}

TEST_CASE("max-min: the A100 of the header, 36.5 GB/s both ways and 2 to 1, gives 12.2 and 24.3") {
  const auto rates = solve({25, 25, 36.5}, {{.links = 0b101}, {.links = 0b110, .weight = 2}});
  REQUIRE(rates[0] == Approx(12.2).epsilon(0.005));
  REQUIRE(rates[1] == Approx(24.3).epsilon(0.005));
  REQUIRE(rates[0] + rates[1] == Approx(36.5));
}

TEST_CASE("max-min: a link freed by a flow that is bound elsewhere goes to the others") {
  // The linear network of the textbooks: one long flow, one short flow a link.
  const auto rates = solve({1, 2}, {{.links = 0b11}, {.links = 0b01}, {.links = 0b10}});
  REQUIRE(rates == std::vector<double>{0.5, 0.5, 1.5});
}

TEST_CASE("max-min: one flow that stands for k equal ones gets what each of the k would get") {
  const auto apart = solve({10, 7}, {{.links = 0b11}, {.links = 0b01}, {.links = 0b01}, {.links = 0b01}});
  const auto folded = solve({10, 7}, {{.links = 0b11}, {.links = 0b01, .times = 3}});
  REQUIRE(folded[0] == Approx(apart[0]));
  REQUIRE(folded[1] == Approx(apart[1]));
}

TEST_CASE("max-min: degenerate systems") {
  REQUIRE(solve({}, {}).empty());
  REQUIRE(solve({0}, {{.links = 1}}) == std::vector<double>{0});
  REQUIRE(solve({5}, {{.links = 0, .cap = 3}}) == std::vector<double>{3});
  REQUIRE(solve({5}, {{.links = 0}}) == std::vector<double>{kInfinity});
  REQUIRE(solve({kInfinity, 4}, {{.links = 0b01}, {.links = 0b11}}) == std::vector<double>{kInfinity, 4});
  REQUIRE(solve({5}, {{.links = 1, .cap = 0}, {.links = 1}}) == std::vector<double>{0, 5});
}

TEST_CASE("max-min: all 64 links at once") {
  std::vector<double> capacities;
  std::vector<Flow> flows;
  for (unsigned l = 0; l < 64; ++l) {
    capacities.push_back(1.0 + l);
    flows.push_back({.links = std::uint64_t{1} << l});
  }
  flows.push_back({.links = ~std::uint64_t{0}});
  const auto rates = solve(capacities, flows);
  REQUIRE(rates.back() == 0.5);
  REQUIRE(rates[63] == 63.5);
  REQUIRE(certified(capacities, flows, rates));
}

TEST_CASE("max-min: the certificate rejects what is feasible but not fair") {
  const std::vector<Flow> flows = {{.links = 1}, {.links = 1}};
  REQUIRE(certified({10}, flows, {5, 5}));
  REQUIRE_FALSE(certified({10}, flows, {4, 6}));
  REQUIRE_FALSE(certified({10}, flows, {4, 4}));
  REQUIRE_FALSE(certified({10}, flows, {6, 6}));
}

TEST_CASE("max-min: 100,000 random systems meet the certificate") {
  std::mt19937_64 random(20261130);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const auto spread = [&] { return std::exp2(std::uniform_real_distribution<double>(-10, 10)(random)); };
  int failures = 0;
  for (int system = 0; system < 100'000; ++system) {
    std::vector<double> capacities(static_cast<std::size_t>(pick(1, 8)));
    std::vector<Flow> flows(static_cast<std::size_t>(pick(1, 10)));
    const bool small_integers = pick(0, 1) == 0;  // many exact ties
    for (double& c : capacities) c = small_integers ? pick(0, 4) : spread();
    for (Flow& flow : flows) {
      for (std::size_t l = 0; l < capacities.size(); ++l) {
        if (pick(0, 2) == 0) flow.links |= std::uint64_t{1} << l;
      }
      flow.weight = small_integers ? pick(1, 3) : spread();
      flow.times = pick(0, 1) == 0 ? 1.0 : small_integers ? pick(1, 4) : spread();
      if (flow.links == 0 || pick(0, 2) == 0) flow.cap = small_integers ? pick(0, 4) : spread();
    }
    if (!certified(capacities, flows, solve(capacities, flows))) ++failures;
  }
  REQUIRE(failures == 0);
}

TEST_CASE("max-min: the lexicographic maximum of every integer point, on tiny systems") {
  // Capacities are multiples of 12, so that with at most three flows of weight 1 every fair rate is an integer: the
  // first level is C / 1..3, the next a multiple of 4 over 1..2.
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int system = 0; system < 200; ++system) {
    std::vector<double> capacities(static_cast<std::size_t>(pick(1, 3)));
    for (double& c : capacities) c = 12 * pick(1, 2);
    std::vector<Flow> flows(3);
    for (Flow& flow : flows) {
      flow.links = static_cast<std::uint64_t>(pick(1, (1 << capacities.size()) - 1));
      if (pick(0, 2) == 0) flow.cap = 12 * pick(0, 1);
    }
    std::vector<double> best_sorted{-1, -1, -1};
    std::vector<double> best;
    std::vector<double> point(3);
    const auto limit = [&](std::size_t i) { return std::min(24.0, flows[i].cap); };
    for (point[0] = 0; point[0] <= limit(0); ++point[0]) {
      for (point[1] = 0; point[1] <= limit(1); ++point[1]) {
        for (point[2] = 0; point[2] <= limit(2); ++point[2]) {
          bool feasible = true;
          for (std::size_t l = 0; l < capacities.size(); ++l) feasible &= load(l, flows, point) <= capacities[l];
          if (!feasible) continue;
          std::vector<double> sorted = point;
          std::sort(sorted.begin(), sorted.end());
          if (sorted > best_sorted) {
            best_sorted = sorted;
            best = point;
          }
        }
      }
    }
    REQUIRE(solve(capacities, flows) == best);
  }
}
