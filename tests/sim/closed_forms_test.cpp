// Closed forms of whole hosts: pipelines of depth 1, 2 and 3, ring collectives, copies against collectives, and what
// does not depend on how a result is computed: units of time, threads, folding, storage.
#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "sim/simulator.hpp"
#include "sim/symmetry.hpp"
#include "tests/catch.hpp"
#include "tests/sim/plan_builder.hpp"

using namespace ebb;
using test::PlanBuilder;

namespace {

std::int64_t makespan(const Timeline& t) {
  std::int64_t last = 0;
  for (const Ticks end : t.end) last = std::max(last, end.value);
  return last;
}

/// Both directions at their own rates, so that a copy takes the same whatever the other direction does.
Cluster full_duplex() {
  Cluster c = test::issues_at_once(test::h200_host());
  c.host_link.both.value = {2 * c.host_link.h2d.value.value};
  c.host_link.host_one_way.value = c.host_link.host_both.value = {1e15};
  return c;
}

std::int64_t copy_ticks(const Cluster& c, std::int64_t bytes, std::int64_t calls) {
  return to_ticks(c.host_link.latency.value).value * calls +
         static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) / (c.host_link.h2d.value.value / 1e12)));
}

Op collective(Work work, StreamId stream, std::int64_t bytes, std::uint32_t members, std::uint32_t domains = 1) {
  Op op = PlanBuilder::op(OpKind::collective, stream, work);
  op.bytes = {bytes};
  op.members = members;
  op.domains = domains;
  return op;
}

/// All ranks of a host as classes of their own.
sim::HostRuns unfolded(const std::vector<Plan>& plans) {
  sim::HostRuns host;
  for (std::uint32_t p = 0; p < plans.size(); ++p) {
    host.plans.push_back(&plans[p]);
    host.class_of_place.push_back(p);
  }
  return host;
}

}  // namespace

TEST_CASE("closed form: H2D, kernel, D2H through 1, 2, 3 and 4 slots, every op to the tick") {
  // in(c) = max(in(c-1), out(c-D)) + T; adam(c) = max(in(c), adam(c-1)) + A; out(c) = max(adam(c), out(c-1)) + T.
  const Cluster c = full_duplex();
  constexpr std::int64_t kChunk = 1 << 20;
  constexpr std::size_t kChunks = 20;
  const std::int64_t copy = copy_ticks(c, 12 * kChunk, 3);
  for (std::size_t depth = 1; depth <= 4; ++depth) {
    const Plan plan = test::chunked_step(kChunk * kChunks, kChunk, static_cast<int>(depth));
    const Timeline t = sim::simulate(plan, c, {});
    const std::int64_t adam = sim::OpCost(c, {})(plan.ops[1]).value;
    std::vector<std::int64_t> in(kChunks), updated(kChunks), out(kChunks);
    for (std::size_t k = 0; k < kChunks; ++k) {
      const std::int64_t engine = k > 0 ? in[k - 1] : 0;
      const std::int64_t slot = k >= depth ? out[k - depth] : 0;
      in[k] = std::max(engine, slot) + copy;
      updated[k] = std::max(in[k], k > 0 ? updated[k - 1] : 0) + adam;
      out[k] = std::max(updated[k], k > 0 ? out[k - 1] : 0) + copy;
      CAPTURE(depth, k);
      REQUIRE(t.end[3 * k].value == in[k]);
      REQUIRE(t.end[3 * k + 1].value == updated[k]);
      REQUIRE(t.end[3 * k + 2].value == out[k]);
    }
    // And as a whole: one slot is serial; two alternate, one more copy in or out than chunks; from three on the link is
    // the bound, and the pipeline only fills.
    const auto n = static_cast<std::int64_t>(kChunks);
    if (depth == 1) CHECK(makespan(t) == n * (2 * copy + adam));
    if (depth == 2) CHECK(makespan(t) == n / 2 * (2 * copy + adam) + copy);
    if (depth >= 3) CHECK(makespan(t) == (n + 1) * copy + adam);
  }
}

TEST_CASE("closed form: a ring all-gather of 1 GiB on 2 and 8 GPUs, and an all-reduce of twice its steps") {
  Cluster c = test::issues_at_once(test::h200_host());
  c.gpu.name = "NVIDIA H200";
  c.interconnect.nvlink.value = {360e9};
  c.interconnect.nvlink_domain = 8;
  c.gpus_per_host = 8;
  const double s = 1 << 30;
  for (const double n : {2.0, 8.0}) {
    PlanBuilder b;
    const StreamId comm = b.stream(StreamKind::comm);
    b.add(collective(Work::all_gather, comm, 1 << 30, static_cast<std::uint32_t>(n)));
    const Timeline t = sim::simulate(b.take(), c, {.ranks_per_host = static_cast<std::int64_t>(n)});
    const double us = 8.4 + (n - 1) * 3.4 + s * (n - 1) / n / 360e3;  // NCCL v2.28.3: base + steps + bytes over the bus
    CHECK(static_cast<double>(makespan(t)) / 1e6 == Approx(us).epsilon(1e-6));
  }
}

TEST_CASE("closed form: a collective over the host link shares it with a copy, one inside NVLink hardly does") {
  Cluster c = test::issues_at_once(test::rates_only());
  c.gpus_per_host = 1;
  c.host_link.both.value = {1e12};
  c.host_link.host_one_way.value = c.host_link.host_both.value = {1e15};
  c.interconnect.network.value = {50e9};
  c.interconnect.copy_interference.value = 0.1;
  const sim::OpCost cost(c, {});
  const auto run = [&](std::uint32_t domains, std::int64_t copy_bytes) {
    PlanBuilder b;
    const StreamId comm = b.stream(StreamKind::comm);
    if (copy_bytes > 0) b.h2d(b.stream(StreamKind::h2d), copy_bytes);
    b.add(collective(Work::all_gather, comm, 40'000'000'000, 2, domains));
    Plan plan = b.take();
    Timeline t = sim::simulate(plan, c, {});
    return to_seconds(t.end.back()).value;
  };
  // Alone over the network: half of S a step at 50 GB/s. Beside an endless copy both get half of 55.3 GB/s.
  const double alone = run(2, 0);
  const double beside = run(2, 1'000'000'000'000);
  CHECK(beside - alone == Approx(20e9 / (55.3e9 / 2) - 20e9 / 50e9).epsilon(1e-3));
  // Inside NVLink the copy fills its link, so that a tenth of the rate is lost.
  const double inside = run(1, 0);
  CHECK(run(1, 1'000'000'000'000) - inside == Approx(20e9 / 270e9 * (1 / 0.9 - 1)).epsilon(1e-3));
}

TEST_CASE("closed form: a kernel at the rate of HBM gives way to what its GPU copies") {
  const Cluster c = test::rates_only();
  PlanBuilder b;
  b.h2d(b.stream(StreamKind::h2d), 1'000'000'000'000);
  Op cast = PlanBuilder::op(OpKind::kernel, b.stream(StreamKind::compute), Work::cast);
  cast.bytes = {4'260'000'000'000};
  const OpId kernel = b.add(cast);
  const Timeline t = sim::simulate(b.take(), c, {});
  CHECK(to_seconds(t.end[kernel.index]).value == Approx(4260.0 / (4260.0 - 55.3)));
}

TEST_CASE("closed form: a kernel that shares HBM takes its floor before its bytes flow") {
  Cluster c = test::rates_only();
  c.gpu.kernel_floor.value = {6e-6};
  PlanBuilder b;
  b.h2d(b.stream(StreamKind::h2d), 1'000'000'000'000);
  Op cast = PlanBuilder::op(OpKind::kernel, b.stream(StreamKind::compute), Work::cast);
  cast.bytes = {4'260'000'000};
  b.add(cast);
  const OpId second = b.add(cast);
  const Timeline t = sim::simulate(b.take(), c, {});
  CHECK(to_seconds(t.end[second.index]).value == Approx(2 * (6e-6 + 4.26 / (4260.0 - 55.3))));
}

TEST_CASE("closed form: copies from memory that is not pinned go at their own rate") {
  const Cluster c = test::rates_only();
  PlanBuilder b;
  Op copy = PlanBuilder::op(OpKind::copy_h2d, b.stream(StreamKind::h2d));
  copy.bytes = {8'400'000'000};
  copy.host = Memory::pageable;
  b.add(copy);
  CHECK(to_seconds(sim::simulate(b.take(), c, {}).end[0]).value == Approx(1.0));  // 8.4 GB/s: the default
}

TEST_CASE("closed form: asymmetric chip-to-chip links") {
  // Grace Hopper: 340 GB/s to the device, 295 from it, measured by others (models/clusters/gh200.yaml).
  Cluster c = test::rates_only();
  c.host_link.h2d.value = {340e9};
  c.host_link.d2h.value = {295e9};
  c.host_link.both.value = {450e9};
  c.host_link.host_one_way.value = c.host_link.host_both.value = {1e15};
  PlanBuilder b;
  b.h2d(b.stream(StreamKind::h2d), 225'000'000'000);
  b.d2h(b.stream(StreamKind::d2h), 225'000'000'000);
  const Timeline t = sim::simulate(b.take(), c, {});
  CHECK(to_seconds(t.end[0]).value == Approx(1.0));
  CHECK(to_seconds(t.end[1]).value == Approx(1.0));
}

TEST_CASE("host thread: many small calls cost what the thread needs for them, not what the device needs") {
  // 1,000 copies of 512 bytes: 2.8 us each on the engine; with a slower thread, its 10 us each decide.
  for (const double call : {1e-6, 10e-6}) {
    Cluster c = test::h200_host();
    c.calls.copy.value = {call};
    PlanBuilder b;
    const StreamId in = b.stream(StreamKind::h2d);
    const StreamId host = b.stream(StreamKind::host);
    const OpId copies = b.h2d(in, 512'000, {}, 1000);
    const OpId wait = b.add(PlanBuilder::op(OpKind::host_wait, host), {copies});
    const Timeline t = sim::simulate(b.take(), c, {});
    const double engine = call + 1000 * 2.8e-6 + 512'000 / 55.3e9;
    CHECK(to_seconds(t.start[wait.index]).value == Approx(std::max(engine, 1000 * call)));
  }
}

TEST_CASE("the same bits from one thread and from eight at once") {
  std::vector<Plan> plans;
  for (std::int64_t gpu = 0; gpu < 4; ++gpu) {
    const std::int64_t chunk = (1 << 20) + gpu * 7777;
    plans.push_back(test::chunked_step(chunk * 200, chunk, 2));
  }
  const Cluster c = test::h200_host();
  std::vector<Timeline> expected;
  sim::Simulator().run(unfolded(plans), c, expected);
  std::vector<std::vector<Timeline>> got(8);
  std::vector<std::thread> threads;
  for (auto& mine : got) threads.emplace_back([&] { sim::Simulator().run(unfolded(plans), c, mine); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : got)
    for (std::size_t r = 0; r < plans.size(); ++r) {
      REQUIRE(mine[r].start == expected[r].start);
      REQUIRE(mine[r].end == expected[r].end);
    }
}

TEST_CASE("eight equal ranks simulated one by one give the bits of one that stands for all") {
  const Plan plan = test::chunked_step(64 << 20, 1 << 20, 2);
  const Cluster c = test::h200_host();
  std::vector<Timeline> apart;
  sim::Simulator().run(unfolded(std::vector<Plan>(8, plan)), c, apart);
  const Timeline folded = sim::simulate(plan, c, {.ranks_per_host = 8});
  for (const Timeline& t : apart)
    for (std::size_t i = 0; i < plan.ops.size(); ++i)
      REQUIRE(std::abs(t.end[i].value - folded.end[i].value) <= 2 * static_cast<std::int64_t>(plan.ops.size()));
}

TEST_CASE("the places of a host that behave alike are found, and no others") {
  Cluster c = test::h200_host();
  c.gpus_per_host = 8;
  c.host.sockets = 2;
  c.topology.gpus_per_switch = 2;
  const std::vector<std::uint32_t> same(8, 5);
  CHECK(sim::classes_of_places(same, 0, c, {}) == std::vector<std::uint32_t>(8, 0));
  // One different rank: itself, its neighbour behind the switch, the others of the socket, the other socket.
  std::vector<std::uint32_t> one = same;
  one[2] = 6;
  CHECK(sim::classes_of_places(one, 0, c, {}) == std::vector<std::uint32_t>{0, 0, 1, 2, 3, 3, 3, 3});
  // Groups of two ranks four apart: place 6 meets the different one.
  const std::vector<sim::GroupForm> pairs = {{4, 2}};
  CHECK(sim::classes_of_places(one, 0, c, pairs) == std::vector<std::uint32_t>{0, 0, 1, 2, 3, 3, 4, 5});
}
