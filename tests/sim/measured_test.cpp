// Predictions against copies and chunked steps measured on one H200 host (tests/data/measured/README.md).
#include "tests/measured.hpp"

#include <string>

#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/sim/plan_builder.hpp"

using namespace ebb;
using test::PlanBuilder;

namespace {

double makespan(const Plan& plan, const Cluster& cluster) {
  const Timeline t = sim::simulate(plan, cluster, {});
  Ticks last{0};
  for (const Ticks end : t.end) last = std::max(last, end);
  return to_seconds(last).value;
}

}  // namespace

TEST_CASE("measured: copies back to back on a stream") {
  const auto lines = test::measured("h200-copies.jsonl", "smallcopies");
  REQUIRE(lines.size() == 5);
  for (const auto& line : lines) {
    PlanBuilder b;
    const StreamId in = b.stream(StreamKind::h2d);
    const std::int64_t bytes = line.at("bytes");
    const int n = line.at("n");
    for (int i = 0; i < n; ++i) b.h2d(in, bytes);
    const double each = makespan(b.take(), test::h200_host()) / n * 1e6;
    CAPTURE(bytes, each);
    // 16 KiB is 7 % off: below 64 KiB the driver may put the data into the command stream itself.
    REQUIRE(each == Approx(line.at("us_each").get<double>()).epsilon(bytes < 65536 ? 0.08 : 0.01));
  }
}

namespace {

/// The host that `file` was measured on: its rates in both directions by size.
Cluster host_of(const std::string& file) {
  Cluster c = test::h200_host();
  for (const auto& line : test::measured(file, "bidir"))
    c.host_link.both_by_size.value.push_back({{line.at("bytes")}, {line.at("total_GBs").get<double>() * 1e9}});
  return c;
}

double chunked_seconds(const nlohmann::json& line, const Cluster& cluster) {
  return makespan(test::chunked_step(line.at("N"), line.at("chunk"), line.at("buffers")), cluster);
}

}  // namespace

TEST_CASE("measured: both directions at once, at each size") {
  for (const char* file : {"h200-copies.jsonl", "h200-copies-2gpu.jsonl"}) {
    const auto lines = test::measured(file, "bidir");
    REQUIRE(lines.size() == 3);
    for (const auto& line : lines) {
      PlanBuilder b;
      b.h2d(b.stream(StreamKind::h2d), line.at("bytes"));
      b.d2h(b.stream(StreamKind::d2h), line.at("bytes"));
      CHECK(makespan(b.take(), host_of(file)) == Approx(line.at("s").get<double>()).epsilon(0.006));
    }
  }
}

TEST_CASE("measured: chunked steps through one, two and three windows") {
  const auto lines = test::measured("h200-copies.jsonl", "chunked");
  REQUIRE(lines.size() == 15);
  for (const auto& line : lines) {
    CAPTURE(line.dump());
    CHECK(chunked_seconds(line, host_of("h200-copies.jsonl")) == Approx(line.at("s").get<double>()).epsilon(0.03));
  }
}

TEST_CASE("measured: chunked steps on the host with two GPUs, by its own link figures") {
  const auto lines = test::measured("h200-copies-2gpu.jsonl", "chunked");
  REQUIRE(lines.size() == 15);
  Cluster host = host_of("h200-copies-2gpu.jsonl");
  host.host_link.h2d.value = {55.4e9};
  for (const auto& line : lines) {
    CAPTURE(line.dump());
    const std::int64_t chunk = line.at("chunk");
    double tolerance = 0.03;
    if (line.at("buffers") == 2 && chunk == 16 << 20) {
      // Predicted 7 % too fast. The run stands alone: through three windows the same host took 0.139 s (predicted
      // within 3 %), and the other host took 0.139 s through two.
      tolerance = 0.075;
    } else if (line.at("buffers") == 2 && chunk == 128 << 20) {
      // Predicted 3.7 % too slow. Its three pairs of copies moved 100 GB/s, more than any `bidir` of this host.
      tolerance = 0.04;
    }
    CHECK(chunked_seconds(line, host) == Approx(line.at("s").get<double>()).epsilon(tolerance));
  }
}

TEST_CASE("measured: two GPUs of one host share it") {
  // Another host than the one above: 55.4 GB/s a GPU one way alone; both GPUs 105.1 one way and 137.35 both ways.
  const auto total = [](const char* kind) {
    return test::measured("h200-copies-2gpu.jsonl", kind).at(0).at("total_GBs").get<double>() * 1e9;
  };
  Cluster c = test::h200_host();
  c.host_link.host_one_way.value = {total("both_h2d")};
  c.host_link.host_both.value = {total("both_bidir")};
  constexpr std::int64_t kBytes = 4LL << 30;
  const auto rate = [&](bool in, bool out) {  // of both GPUs, bytes a second
    PlanBuilder b;
    if (in) b.h2d(b.stream(StreamKind::h2d), kBytes);
    if (out) b.d2h(b.stream(StreamKind::d2h), kBytes);
    const Timeline t = sim::simulate(b.take(), c, {.ranks_per_host = 2});
    return 2.0 * static_cast<double>(kBytes) * (in && out ? 2 : 1) / to_seconds(t.end.back()).value;
  };
  CHECK(rate(true, false) == Approx(total("both_h2d")).epsilon(0.002));
  CHECK(rate(false, true) == Approx(total("both_d2h")).epsilon(0.005));  // predicted from the other direction
  CHECK(rate(true, true) == Approx(total("both_bidir")).epsilon(0.002));
}
