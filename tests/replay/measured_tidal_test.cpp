// tidal beside resident, chunked and pipelined, as replayed on an H200 (tests/data/replay/h200-2026-12-01): three
// shapes of activations, and for one of them more and more memory. Predictions, bytes and order as in
// measured_replay_test.cpp; and what tidal promises: chunked's peak, and a time exposed close to the fluid bound.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/replay/measured_runs.hpp"

using namespace ebb;
using test::median_of;
using test::Replayed;

namespace {

/// Timelines of one call on one host, and its figures, which the schedules were solved for.
struct Machine {
  Cluster cluster;
  std::vector<Replayed> runs;

  const Replayed& run(const std::string& name) const {
    const auto found = std::find_if(runs.begin(), runs.end(),
                                    [&](const Replayed& replay) { return replay.name == name + ".measured.json"; });
    REQUIRE(found != runs.end());
    return *found;
  }
  double step(const std::string& name) const { return median_of(run(name).measured.ranks[0].steps); }
  double update(const std::string& name) const { return median_of(run(name).measured.ranks[0].updates); }
  Bytes peak(const std::string& name) const { return run(name).measured.ranks[0].memory.live_peak; }

  /// The whole step less resident's without its optimizer.
  double exposed(const std::string& shape) const {
    return step(shape + "-tidal") - (step(shape + "-resident") - update(shape + "-resident"));
  }
};

Machine machine_of(const std::string& folder) {
  Machine host{load_cluster(test::measured_folder(folder) / "cluster.yaml"), {}};
  host.runs = test::replayed_in(test::measured_folder(folder), host.cluster);
  return host;
}

/// All shapes and caps; and shape (b) again, on another host.
const std::vector<Machine>& hosts() {
  static const std::vector<Machine> all{machine_of("h200-2026-12-01"), machine_of("h200-2026-12-01-b")};
  return all;
}

/// Both directions at once, bytes a second: the more of what copies alone reached in the same run, right before the
/// steps, and what the steps did. Between runs the host's other users take more or less of it.
double link_of(const Replayed& replay) {
  for (const auto& fact : replay.measured.provenance) {
    if (fact.first != "link of rank 0") continue;
    const std::string& text = fact.second;
    const auto number_after = [&](const char* word) {
      const std::size_t at = text.find(word);
      REQUIRE(at != std::string::npos);
      return std::stod(text.substr(at + std::string(word).size())) * 1e9;
    };
    return std::max(number_after(" at once reach "), number_after("step's reached "));
  }
  FAIL("no link");
  return 0;
}

/// The fluid bound by the formula for one level of activations, from round figures of the shape: `elements` of 12
/// bytes, `valley` bytes free below the cap after the last backward, one micro-batch's forward and backward in seconds.
double bound(const Machine& host, const std::string& shape, double elements, double valley, double forward,
             double backward) {
  const double h2d = host.cluster.host_link.h2d.value.value;
  const double d2h = host.cluster.host_link.d2h.value.value;
  const double state = 12 * elements;
  const double in = std::min(valley, h2d * backward);
  const double out = std::min(valley, d2h * forward);
  const double both = link_of(host.run(shape + "-tidal"));
  return std::max({(2 * state - in - out) / both, (state - in) / h2d, (state - out) / d2h});
}

}  // namespace

TEST_CASE("what was replayed of three shapes is the plan of today, in its order, with its bytes") {
  REQUIRE(hosts()[0].runs.size() == 19);
  REQUIRE(hosts()[1].runs.size() == 4);
  for (const Machine& host : hosts()) {
    for (const Replayed& replay : host.runs) {
      INFO(replay.name);
      CHECK(replay.measured.plan_digest == digest_of(replay.planned.plans));
      REQUIRE(replay.measured.ranks[0].ops.size() == replay.planned.plans[0].ops.size());
      CHECK(test::early_starts(replay) == 0);
      CHECK(test::memory_as_planned(replay));
    }
  }
}

TEST_CASE("tidal on an H200 is predicted within 5 %, whole step and optimizer's") {
  for (const Machine& host : hosts()) {
    for (const Replayed& replay : host.runs) {
      if (replay.measured.candidate.policy != Policy::tidal) continue;
      INFO(replay.name);
      const test::Off by = test::off(replay, host.cluster);
      CHECK(by.step < 0.05);
      CHECK(by.update < 0.05);
    }
  }
}

TEST_CASE("tidal on an H200: chunked's peak, and exposed time within 5 % of the fluid bound") {
  const Machine& first = hosts()[0];
  for (const char* shape : {"a", "b", "c"}) {
    INFO(shape);
    CHECK(static_cast<double>(first.peak(std::string(shape) + "-tidal").value) <=
          1.01 * static_cast<double>(first.peak(std::string(shape) + "-chunked").value));
  }
  // Durations of one micro-batch: 207.9 ms for four and 712.1 ms for two, forward to backward as 1 to 2, and 1 to 3
  // with recomputation.
  CHECK(first.exposed("a") < 1.05 * bound(first, "a", 1.817e9, 4.7e9, 0.2079 / 4 / 3, 0.2079 / 4 * 2 / 3));
  for (const Machine& host : hosts())
    CHECK(host.exposed("b") < 1.05 * bound(host, "b", 4.557e9, 1.2e9, 0.7121 / 2 / 4, 0.7121 / 2 * 3 / 4));
  CHECK(first.step("c-tidal") < 1.05 * first.step("c-resident"));
}

TEST_CASE("tidal on an H200: a step takes less time with every GiB more, down to resident's") {
  const Machine& host = hosts()[0];
  double last = host.step("b-tidal");
  for (const char* cap : {"32", "40", "48", "56", "64", "72", "80"}) {
    const std::string name = "b-tidal-" + std::string(cap) + "GiB";
    INFO(name);
    CHECK(host.peak(name) <= Bytes{std::int64_t{std::stoi(cap)} << 30});
    CHECK(host.step(name) < last);
    last = host.step(name);
  }
  CHECK(last < 1.02 * host.step("b-resident"));
}
