// Predictions against copies and chunked steps measured on one H200 host (tests/data/measured/README.md).
#include "tests/sim/measured.hpp"

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

TEST_CASE("measured: both directions at once") {
  for (const auto& line : test::measured("h200-copies.jsonl", "bidir")) {
    PlanBuilder b;
    b.h2d(b.stream(StreamKind::h2d), line.at("bytes"));
    b.d2h(b.stream(StreamKind::d2h), line.at("bytes"));
    // One figure for all sizes: the host does 2.3 % better at 64 MiB and 1.8 % worse at 4 GiB.
    REQUIRE(makespan(b.take(), test::h200_host()) == Approx(line.at("s").get<double>()).epsilon(0.025));
  }
}

TEST_CASE("measured: chunked steps through one, two and three windows") {
  const auto lines = test::measured("h200-copies.jsonl", "chunked");
  REQUIRE(lines.size() == 15);
  for (const auto& line : lines) {
    const std::int64_t chunk = line.at("chunk");
    const int windows = line.at("buffers");
    const double measured = line.at("s");
    const Plan plan = test::chunked_step(line.at("N"), chunk, windows);
    const double seconds = makespan(plan, test::h200_host());
    CAPTURE(chunk, windows, seconds, measured);
    if (windows == 1) {
      CHECK(seconds == Approx(measured).epsilon(0.0025));
    } else if (chunk == 4 << 20 && windows == 2) {
      // 3.5 % slow: this run moved 98.4 GB/s over all, above the 97.7 that the cluster gives for both directions at any
      // size. With the 99.97 measured for copies of 64 MiB it is within 1.5 %.
      CHECK(seconds == Approx(measured).epsilon(0.04));
      Cluster small_copies = test::h200_host();
      small_copies.host_link.both.value = {99.97e9};
      CHECK(makespan(plan, small_copies) == Approx(measured).epsilon(0.015));
    } else {
      CHECK(seconds == Approx(measured).epsilon(0.025));
    }
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
