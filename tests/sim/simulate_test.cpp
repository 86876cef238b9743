// Simulated timelines against closed forms.
#include "sim/simulate.hpp"

#include <cmath>

#include "sim/simulator.hpp"
#include "tests/catch.hpp"
#include "tests/sim/plan_builder.hpp"

using namespace ebb;
using test::PlanBuilder;

namespace {

using test::issues_at_once;

constexpr std::int64_t kSecond = kTicksPerSecond;

/// Round rates: 10 GB/s each way, 16 both ways, no latency anywhere.
Cluster round_rates() {
  Cluster c = test::rates_only();
  c.host_link.h2d.value = c.host_link.d2h.value = {10e9};
  c.host_link.both.value = {16e9};
  c.host_link.host_one_way.value = c.host_link.host_both.value = {1e12};
  c.gpu.adam.value = {1e12};
  return c;
}

std::int64_t end(const Timeline& t, OpId op) { return t.end[op.index].value; }
std::int64_t start(const Timeline& t, OpId op) { return t.start[op.index].value; }

/// What a copy alone takes: latency, then bytes at the rate, rounded up.
std::int64_t alone(const Cluster& c, std::int64_t bytes, std::uint32_t calls = 1) {
  return to_ticks({c.host_link.latency.value.value * calls}).value +
         static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) / (c.host_link.h2d.value.value / 1e12)));
}

}  // namespace

TEST_CASE("simulate: nothing takes no time") {
  const Timeline t = sim::simulate(Plan{}, issues_at_once(test::h200_host()), {});
  REQUIRE(t.end.empty());
  REQUIRE(t.source == TimelineSource::predicted);
}

TEST_CASE("simulate: one copy takes latency per call and bytes over the rate, to the tick") {
  PlanBuilder b;
  const OpId copy = b.h2d(b.stream(StreamKind::h2d), 12'345'678'901, {}, 9);
  const Cluster c = issues_at_once(test::h200_host());
  const Timeline t = sim::simulate(b.take(), c, {});
  REQUIRE(start(t, copy) == 0);
  REQUIRE(end(t, copy) == alone(c, 12'345'678'901, 9));
}

TEST_CASE("simulate: a copy of no bytes takes its latency, and no time without one") {
  PlanBuilder b;
  const OpId copy = b.d2h(b.stream(StreamKind::d2h), 0);
  const Plan plan = b.take();
  REQUIRE(end(sim::simulate(plan, issues_at_once(test::h200_host()), {}), copy) == 2'800'000);
  REQUIRE(end(sim::simulate(plan, test::rates_only(), {}), copy) == 0);
}

TEST_CASE("simulate: equal copies in opposite directions share what both directions can do") {
  PlanBuilder b;
  const OpId in = b.h2d(b.stream(StreamKind::h2d), 8'000'000'000);
  const OpId out = b.d2h(b.stream(StreamKind::d2h), 8'000'000'000);
  const Timeline t = sim::simulate(b.take(), round_rates(), {});
  REQUIRE(end(t, in) == kSecond);  // 16 GB at 16 GB/s
  REQUIRE(end(t, out) == kSecond);
}

TEST_CASE("simulate: the longer of two opposite copies speeds up when the other ends") {
  PlanBuilder b;
  const OpId in = b.h2d(b.stream(StreamKind::h2d), 8'000'000'000);
  const OpId out = b.d2h(b.stream(StreamKind::d2h), 13'000'000'000);
  const Timeline t = sim::simulate(b.take(), round_rates(), {});
  REQUIRE(end(t, in) == kSecond);
  REQUIRE(end(t, out) == kSecond + kSecond / 2);  // 8 at 8 GB/s, then 5 at 10
}

TEST_CASE("simulate: a copy that shares nothing ends on its tick, however often the other direction starts and stops") {
  Cluster c = round_rates();
  c.host_link.both.value = {20e9};
  PlanBuilder b;
  const OpId in = b.h2d(b.stream(StreamKind::h2d), 10'000'000'000);  // a whole number of ticks: any rounding shows
  const StreamId back = b.stream(StreamKind::d2h);
  for (int i = 0; i < 1000; ++i) b.d2h(back, 1'000'003);
  const Timeline t = sim::simulate(b.take(), c, {});
  REQUIRE(end(t, in) == kSecond);
}

TEST_CASE("simulate: a copy of no bytes ends before the other engine chooses at that tick") {
  PlanBuilder b;
  const StreamId one = b.stream(StreamKind::d2h);
  const StreamId two = b.stream(StreamKind::d2h);
  const StreamId compute = b.stream(StreamKind::compute);
  const OpId almost = b.compute(compute, {kSecond - 2'800'000});
  const OpId timer = b.compute(compute, {2'800'000});                // ends at 1 s
  const OpId empty = b.h2d(b.stream(StreamKind::h2d), 0, {almost});  // latency only: so does this
  const OpId first = b.d2h(one, 10'000'000'000, {empty});
  const OpId second = b.d2h(two, 10'000'000'000, {timer});
  Cluster c = round_rates();
  c.host_link.latency.value = {2.8e-6};
  const Timeline t = sim::simulate(b.take(), c, {});
  REQUIRE(end(t, empty) == kSecond);
  REQUIRE(start(t, first) == kSecond);
  REQUIRE(start(t, second) == end(t, first));
}

TEST_CASE("simulate: a weighted link, 36.5 GB/s both ways and 2 to 1 (PCIe 4 A100, nvbandwidth issue 11)") {
  Cluster c = round_rates();
  c.host_link.h2d.value = c.host_link.d2h.value = {25e9};
  c.host_link.both.value = {36.5e9};
  c.host_link.d2h_weight.value = 2;
  PlanBuilder b;
  const OpId in = b.h2d(b.stream(StreamKind::h2d), 12'166'666'667);
  const OpId out = b.d2h(b.stream(StreamKind::d2h), 24'333'333'333);
  const Timeline t = sim::simulate(b.take(), c, {});
  REQUIRE(static_cast<double>(end(t, in)) == Approx(1e12).epsilon(1e-9));
  REQUIRE(static_cast<double>(end(t, out)) == Approx(1e12).epsilon(1e-9));
}

TEST_CASE("simulate: ranks of one host split what the host can do") {
  // Two H200 of one host, measured: 105 GB/s one way together, 137 both ways.
  const Cluster c = test::rates_only();
  PlanBuilder b;
  const OpId in = b.h2d(b.stream(StreamKind::h2d), 52'550'000'000);
  const OpId out = b.d2h(b.stream(StreamKind::d2h), 34'337'500'000, {in});
  const OpId in_again = b.h2d({0}, 34'337'500'000, {in});
  const Timeline t = sim::simulate(b.take(), c, {.ranks_per_host = 2});
  REQUIRE(static_cast<double>(end(t, in)) == Approx(1e12));
  REQUIRE(static_cast<double>(end(t, out)) == Approx(2e12));
  REQUIRE(static_cast<double>(end(t, in_again)) == Approx(2e12));
}

TEST_CASE("simulate: one engine a direction, first come first served") {
  PlanBuilder b;
  const StreamId one = b.stream(StreamKind::h2d);
  const StreamId two = b.stream(StreamKind::h2d);
  const StreamId compute = b.stream(StreamKind::compute);
  const OpId late = b.compute(compute, {kSecond / 2});
  const OpId third = b.h2d(one, 10'000'000'000, {late});  // ready at 0.5 s, before `fourth` is
  const OpId first = b.h2d(two, 10'000'000'000);
  const OpId fourth = b.h2d(two, 10'000'000'000);  // ready at 1 s
  const Timeline t = sim::simulate(b.take(), round_rates(), {});
  REQUIRE(end(t, first) == kSecond);
  REQUIRE(start(t, third) == kSecond);
  REQUIRE(end(t, third) == 2 * kSecond);
  REQUIRE(end(t, fourth) == 3 * kSecond);
}

TEST_CASE("simulate: copies that become ready together go in program order, whatever their stream") {
  for (const bool swapped : {false, true}) {
    PlanBuilder b;
    const StreamId one = b.stream(StreamKind::h2d);
    const StreamId two = b.stream(StreamKind::h2d);
    const OpId gate = b.compute(b.stream(StreamKind::compute), {1000});
    const OpId first = b.h2d(swapped ? two : one, 10'000'000'000, {gate});
    const OpId second = b.h2d(swapped ? one : two, 10'000'000'000, {gate});
    const Timeline t = sim::simulate(b.take(), round_rates(), {});
    REQUIRE(end(t, first) == 1000 + kSecond);
    REQUIRE(start(t, second) == 1000 + kSecond);
    REQUIRE(end(t, second) == 1000 + 2 * kSecond);
  }
}

TEST_CASE("simulate: a copy made ready by an end competes with one that was to start at that tick") {
  PlanBuilder b;
  const StreamId in = b.stream(StreamKind::h2d);
  const StreamId one = b.stream(StreamKind::d2h);
  const StreamId two = b.stream(StreamKind::d2h);
  const OpId arrived = b.h2d(in, 10'000'000'000);                          // ends at 1 s
  const OpId timer = b.compute(b.stream(StreamKind::compute), {kSecond});  // so does this, known from the start
  const OpId first = b.d2h(one, 10'000'000'000, {arrived});
  const OpId second = b.d2h(two, 10'000'000'000, {timer});
  const Timeline t = sim::simulate(b.take(), round_rates(), {});
  REQUIRE(start(t, first) == kSecond);
  REQUIRE(start(t, second) == 2 * kSecond);
}

TEST_CASE("simulate: one slot is the exact sum of its parts") {
  const Cluster c = issues_at_once(test::h200_host());
  constexpr std::int64_t kChunk = 4 << 20;
  constexpr int kChunks = 10;
  const Plan plan = test::chunked_step(kChunk * kChunks, kChunk, 1);
  const Timeline t = sim::simulate(plan, c, {});
  const std::int64_t adam = sim::OpCost(c, {})(plan.ops[1]).value;
  REQUIRE(t.end.back().value == kChunks * (2 * alone(c, 12 * kChunk, 3) + adam));
}

TEST_CASE(
    "simulate: two slots follow the recurrence of a two-deep pipeline where directions do not disturb each other") {
  // Full duplex, so that a copy's time does not depend on the other direction:
  //   in(c) = max(in(c-1), out(c-2)) + T; adam(c) = max(in(c), adam(c-1)) + A; out(c) = max(adam(c), out(c-1)) + T.
  Cluster c = issues_at_once(test::h200_host());
  c.host_link.both.value = {2 * c.host_link.h2d.value.value};
  constexpr std::int64_t kChunk = 1 << 20;
  constexpr int kChunks = 12;
  const Plan plan = test::chunked_step(kChunk * kChunks, kChunk, 2);
  const Timeline t = sim::simulate(plan, c, {});
  const std::int64_t copy = alone(c, 12 * kChunk, 3);
  const std::int64_t adam = sim::OpCost(c, {})(plan.ops[1]).value;
  std::int64_t in = 0;
  std::int64_t updated = 0;
  std::int64_t out = 0;
  std::int64_t out_before = 0;  // the chunk before
  for (std::size_t k = 0; k < kChunks; ++k) {
    in = std::max(in, out_before) + copy;
    updated = std::max(in, updated) + adam;
    out_before = out;
    out = std::max(updated, out) + copy;
    REQUIRE(t.end[3 * k].value == in);
    REQUIRE(t.end[3 * k + 1].value == updated);
    REQUIRE(t.end[3 * k + 2].value == out);
  }
}

TEST_CASE("simulate: a stream is in order, and an op waits for all its dependencies") {
  PlanBuilder b;
  const StreamId host = b.stream(StreamKind::host);
  const StreamId compute = b.stream(StreamKind::compute);
  const StreamId comm = b.stream(StreamKind::comm);
  const OpId a = b.compute(compute, {100});
  const OpId other = b.compute(comm, {300});
  const OpId joined = b.compute(compute, {10}, {other});
  const OpId wait = b.add(PlanBuilder::op(OpKind::host_wait, host), {a, joined});
  const OpId after = b.compute(host, {1});
  const Timeline t = sim::simulate(b.take(), issues_at_once(test::h200_host()), {});
  REQUIRE(start(t, joined) == 300);
  REQUIRE(start(t, wait) == 310);
  REQUIRE(end(t, wait) == 310 + 5'000'000);
  REQUIRE(end(t, after) == 310 + 5'000'001);
}

TEST_CASE("simulate: a stream that sleeps on many ops one after another is woken for each") {
  PlanBuilder b;
  const StreamId host = b.stream(StreamKind::host);
  std::vector<OpId> copies;
  std::vector<StreamId> streams;
  for (int i = 0; i < 50; ++i) streams.push_back(b.stream(i % 2 == 0 ? StreamKind::h2d : StreamKind::d2h));
  for (int i = 0; i < 500; ++i) {
    const auto kind = i % 2 == 0 ? OpKind::copy_h2d : OpKind::copy_d2h;
    copies.push_back(b.copy(kind, streams[static_cast<std::size_t>(i % 50)], 1000 * i));
  }
  const OpId wait = b.add(PlanBuilder::op(OpKind::host_wait, host), copies);
  const Timeline t = sim::simulate(b.take(), test::rates_only(), {});
  std::int64_t last = 0;
  for (const OpId copy : copies) last = std::max(last, end(t, copy));
  REQUIRE(last > 0);
  REQUIRE(end(t, wait) == last);
}
