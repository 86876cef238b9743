// `windowed`'s step against a bare loop of the same copies and kernels, timed on three H200 hosts
// (tests/data/measured/windowed_loop.py). Hosts differ in how they share the link between its directions, so a single
// host is matched more loosely than their mean.
#include <algorithm>
#include <map>
#include <vector>

#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/measured.hpp"
#include "tests/planner/lowering_cases.hpp"

using namespace ebb;

namespace {

/// The step's ops of one kind by chunk: first start and last end, seconds after the step began.
struct Span {
  double start = 1e9;
  double end = 0;
};

class PredictedStep {
 public:
  explicit PredictedStep(std::int64_t chunk_size_mb)
      : case_(test::measured_case()),
        plan_(lower(case_.rank, {.policy = Policy::windowed, .chunk_size_mb = chunk_size_mb})),
        timeline_(sim::simulate(plan_, case_.job->cluster, {})) {
    for (std::size_t i = 0; i < plan_.ops.size(); ++i)
      if (plan_.ops[i].phase == Phase::finalize) begin_ = std::max(begin_, timeline_.end[i]);
  }

  double seconds() const {
    return span([](const Op& op) { return op.phase == Phase::step; }).end;
  }

  Span of_chunk(OpKind kind, std::uint32_t chunk) const {
    return span([&](const Op& op) { return op.phase == Phase::step && op.kind == kind && op.chunk == chunk; });
  }

 private:
  template <class Filter>
  Span span(Filter filter) const {
    Span found;
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      if (!filter(plan_.ops[i])) continue;
      found.start = std::min(found.start, to_seconds(timeline_.start[i] - begin_).value);
      found.end = std::max(found.end, to_seconds(timeline_.end[i] - begin_).value);
    }
    return found;
  }

  test::RankCase case_;
  Plan plan_;
  Timeline timeline_;
  Ticks begin_{0};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

TEST_CASE("measured: windowed's step is a bare loop's, at every chunk size and on every host") {
  std::map<std::int64_t, std::vector<double>> by_chunk_size;
  for (const auto& line : test::measured("h200-windowed-loop.jsonl", "windowed")) {
    if (line.at("adam") != "foreach") continue;
    std::vector<double> runs = line.at("s");
    runs.erase(runs.begin());  // the first run warms up
    by_chunk_size[line.at("mb")].push_back(median(runs));
  }
  REQUIRE(by_chunk_size.size() == 3);
  for (const auto& [mb, hosts] : by_chunk_size) {
    INFO("chunks of " << mb << " MiB");
    REQUIRE(hosts.size() >= 2);
    const double predicted = PredictedStep(mb).seconds();
    double sum = 0;
    for (const double seconds : hosts) {
      CHECK(predicted == Approx(seconds).epsilon(0.07));
      sum += seconds;
    }
    CHECK(predicted == Approx(sum / static_cast<double>(hosts.size())).epsilon(0.03));
  }
}

TEST_CASE("measured: each chunk of the loop starts and ends where it is predicted to") {
  const auto traces = test::measured("h200-windowed-loop.jsonl", "trace");
  REQUIRE(!traces.empty());
  const PredictedStep predicted(512);
  std::size_t compared = 0;
  for (const auto& trace : traces) {
    const double whole = trace.at("s");
    for (const auto& row : trace.at("rows")) {
      const std::string what = row[0];
      const std::uint32_t chunk = row[1];
      if (what == "s" || (what == "h" && chunk == 0)) continue;  // chunk 0 is there before the step
      const Span span = predicted.of_chunk(what == "h" ? OpKind::copy_h2d : OpKind::copy_d2h, chunk);
      INFO(what << " of chunk " << chunk);
      // Where in the step, as a share of it: what is left is the order and overlap of the copies.
      CHECK(span.start / predicted.seconds() == Approx(row[2].get<double>() / 1e3 / whole).margin(0.02));
      CHECK(span.end / predicted.seconds() == Approx(row[3].get<double>() / 1e3 / whole).margin(0.02));
      ++compared;
    }
  }
  CHECK(compared >= 53);
}
