// Properties of simulated timelines on random plans: agreement with a naive simulator, order, conservation of bytes,
// time scaling, determinism, monotonicity.
#include <cmath>

#include "sim/simulate.hpp"
#include "sim/simulator.hpp"
#include "tests/catch.hpp"
#include "tests/sim/naive_simulator.hpp"
#include "tests/sim/plan_builder.hpp"
#include "tests/sim/random.hpp"

using namespace ebb;
using test::PlanBuilder;
using test::Random;

namespace {

/// Any kinds on any streams: copies off their own streams and several streams a direction are allowed by the Plan.
Plan random_plan(Random& random, std::int64_t ops) {
  PlanBuilder b;
  const std::int64_t streams = random.pick(1, 7);
  for (std::int64_t s = 0; s < streams; ++s) b.stream(StreamKind::compute);
  for (std::int64_t i = 0; i < ops; ++i) {
    constexpr OpKind kKinds[] = {OpKind::copy_h2d, OpKind::copy_d2h, OpKind::copy_h2d,  OpKind::copy_d2h,
                                 OpKind::kernel,   OpKind::compute,  OpKind::host_wait, OpKind::allocate};
    Op op = PlanBuilder::op(kKinds[random.pick(0, 7)], {static_cast<std::uint32_t>(random.pick(0, streams - 1))});
    op.calls = static_cast<std::uint32_t>(random.pick(1, 3));
    op.bytes = {random.pick(1, 5'000'000'000)};
    op.duration = {random.pick(0, kTicksPerSecond / 10)};
    std::vector<OpId> deps;
    for (std::int64_t d = random.pick(0, 3); d > 0 && i > 0; --d) {
      deps.push_back({static_cast<std::uint32_t>(random.pick(std::max<std::int64_t>(0, i - 12), i - 1))});
    }
    b.add(op, deps);
  }
  return b.take();
}

Cluster random_cluster(Random& random) {
  Cluster c = random.pick(0, 1) == 0 ? test::h200_host() : test::rates_only();
  c.host_link.h2d.value = {random.real(5e9, 60e9)};
  c.host_link.d2h.value = {random.real(5e9, 60e9)};
  c.host_link.both.value = {random.real(5e9, 120e9)};
  c.host_link.d2h_weight.value = random.real(0.3, 3);
  c.host_link.host_one_way.value = {random.real(20e9, 400e9)};
  c.host_link.host_both.value = {random.real(20e9, 600e9)};
  c.gpu.kernel_floor.value = {random.real(0, 8e-6)};
  return c;
}

/// All rates times two, all latencies zero already.
Cluster twice_as_fast(Cluster c) {
  for (auto* rate : {&c.host_link.h2d, &c.host_link.d2h, &c.host_link.both, &c.host_link.host_one_way,
                     &c.host_link.host_both, &c.gpu.hbm, &c.gpu.adam}) {
    rate->value.value *= 2;
  }
  return c;
}

}  // namespace

TEST_CASE("simulate: agrees with a naive simulator on 400 random plans") {
  Random random(1);
  for (int round = 0; round < 400; ++round) {
    const Plan plan = random_plan(random, random.pick(1, 60));
    const Cluster cluster = random_cluster(random);
    const sim::Sharing sharing{.ranks_per_host = random.pick(1, 8)};
    const Timeline t = sim::simulate(plan, cluster, sharing);
    const auto expected = test::naive_simulate(plan, cluster, sharing);
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      CAPTURE(round, i, static_cast<int>(plan.ops[i].kind));
      // Ticks round up at each change of rate; 1 ns is far under any effect of a wrong rule.
      REQUIRE(std::abs(to_seconds(t.start[i]).value - expected[i].start) < 1e-9);
      REQUIRE(std::abs(to_seconds(t.end[i]).value - expected[i].end) < 1e-9);
    }
  }
}

TEST_CASE("simulate: streams and dependencies hold to the tick, engines never overlap, bytes fit the links") {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    const Plan plan = random_plan(random, 200);
    const Cluster cluster = random_cluster(random);
    const Timeline t = sim::simulate(plan, cluster, {});
    std::vector<std::int64_t> stream_end(plan.streams.size(), 0);
    std::vector<std::pair<std::int64_t, std::int64_t>> engine[2];
    double bytes[2] = {0, 0};
    double last_end[2] = {0, 0};
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const Op& op = plan.ops[i];
      REQUIRE(t.start[i].value >= stream_end[op.stream.index]);
      REQUIRE(t.end[i] >= t.start[i]);
      stream_end[op.stream.index] = t.end[i].value;
      for (const OpId dep : plan.deps_of(op)) REQUIRE(t.start[i] >= t.end[dep.index]);
      if (op.kind != OpKind::copy_h2d && op.kind != OpKind::copy_d2h) continue;
      const int d = op.kind == OpKind::copy_h2d ? 0 : 1;
      engine[d].emplace_back(t.start[i].value, t.end[i].value);
      bytes[d] += static_cast<double>(op.bytes.value);
      last_end[d] = std::max(last_end[d], to_seconds(t.end[i]).value);
      // No copy beats its own link.
      const double rate = d == 0 ? cluster.host_link.h2d.value.value : cluster.host_link.d2h.value.value;
      REQUIRE(static_cast<double>(op.bytes.value) / rate <= to_seconds(t.end[i] - t.start[i]).value + 1e-9);
    }
    for (auto& spans : engine) {
      std::sort(spans.begin(), spans.end());
      for (std::size_t i = 1; i < spans.size(); ++i) REQUIRE(spans[i].first >= spans[i - 1].second);
    }
    REQUIRE(bytes[0] + bytes[1] <= cluster.host_link.both.value.value * (std::max(last_end[0], last_end[1]) + 1e-9));
  }
}

TEST_CASE("simulate: twice the rates and no latency is half the time") {
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    Plan plan = random_plan(random, 100);
    for (Op& op : plan.ops) {
      if (op.kind == OpKind::compute) op.duration = {op.duration.value * 2};  // even, so that half is exact
    }
    Cluster cluster = random_cluster(random);
    cluster.host_link.latency.value = cluster.gpu.kernel_floor.value = {0};
    cluster = test::issues_at_once(cluster);
    cluster.calls.synchronize.value = {0};
    const Timeline slow = sim::simulate(plan, cluster, {});
    for (Op& op : plan.ops) op.duration = {op.duration.value / 2};
    const Timeline fast = sim::simulate(plan, twice_as_fast(cluster), {});
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      // Each flow rounds up to a tick at each change of its rate.
      const auto ticks = 4 * static_cast<std::int64_t>(plan.ops.size());
      REQUIRE(std::abs(2 * fast.end[i].value - slow.end[i].value) <= ticks);
    }
  }
}

TEST_CASE("simulate: the same bits from a fresh simulator, a used one, and the convenience call") {
  Random random(4);
  sim::Simulator used;
  Timeline again;
  for (int round = 0; round < 100; ++round) {
    const Plan plan = random_plan(random, random.pick(0, 150));
    const Cluster cluster = random_cluster(random);
    const Timeline once = sim::simulate(plan, cluster, {});
    used.run(plan, cluster, {}, again);
    REQUIRE(once.start == again.start);
    REQUIRE(once.end == again.end);
  }
}

TEST_CASE("simulate: more bandwidth never makes a FIFO chain slower") {
  // Chains whose directions do not disturb each other, so that every end is a maximum of sums of durations. (Otherwise
  // a faster direction may take from the other where they share a limit, and a pipeline that waits for it gets slower.)
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t chunk = random.pick(1, 1 << 22);
    const int slots = static_cast<int>(random.pick(1, 4));
    const Plan plan = test::chunked_step(chunk * random.pick(1, 40), chunk, slots);
    Cluster cluster = random_cluster(random);
    if (slots > 1) cluster.host_link.both.value = cluster.host_link.host_both.value = {1e12};
    const Timeline before = sim::simulate(plan, cluster, {});
    auto* const links = &cluster.host_link;
    for (auto* link : {&links->h2d, &links->d2h, &links->both}) {
      if (random.pick(0, 1) == 0) link->value.value *= random.real(1, 3);
    }
    const Timeline after = sim::simulate(plan, cluster, {});
    for (std::size_t i = 0; i < plan.ops.size(); ++i) REQUIRE(after.end[i] <= before.end[i]);
  }
}
