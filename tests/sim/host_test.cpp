// Ranks of one host simulated together: against the naive simulator of every place by itself, on random hosts; folding;
// collectives that meet.
#include <algorithm>
#include <cmath>

#include "sim/simulator.hpp"
#include "sim/symmetry.hpp"
#include "tests/catch.hpp"
#include "tests/sim/naive_simulator.hpp"
#include "tests/sim/plan_builder.hpp"
#include "tests/sim/random.hpp"

using namespace ebb;
using test::PlanBuilder;
using test::Random;

namespace {

/// Collectives of both forms stand at the same places of every plan, so that all ranks meet in one order.
struct Meeting {
  std::uint32_t stride;
  std::uint32_t members;
  std::uint32_t domains;
  Work work;
  std::int64_t bytes;
};

Plan random_rank(Random& random, const std::vector<Meeting>& meetings) {
  PlanBuilder b;
  const StreamId host = b.stream(StreamKind::host);
  const StreamId comm = b.stream(StreamKind::comm);
  const std::int64_t streams = random.pick(2, 5);
  for (std::int64_t s = 2; s < streams + 2; ++s) b.stream(StreamKind::compute);
  std::int64_t index = 0;
  const auto deps = [&] {
    std::vector<OpId> on;
    for (std::int64_t d = random.pick(0, 2); d > 0 && index > 0; --d)
      on.push_back({static_cast<std::uint32_t>(random.pick(std::max<std::int64_t>(0, index - 10), index - 1))});
    return on;
  };
  for (const Meeting& meeting : meetings) {
    for (std::int64_t i = random.pick(0, 12); i > 0; --i, ++index) {
      constexpr OpKind kKinds[] = {OpKind::copy_h2d, OpKind::copy_d2h, OpKind::copy_h2d, OpKind::copy_d2h,
                                   OpKind::kernel,   OpKind::compute,  OpKind::kernel};
      Op op = PlanBuilder::op(kKinds[random.pick(0, 6)], {static_cast<std::uint32_t>(random.pick(2, streams + 1))});
      if (op.kind == OpKind::kernel) op.work = random.chance(2) ? Work::cast : Work::adam;
      if (random.chance(6)) op = PlanBuilder::op(OpKind::host_wait, host);
      if (random.chance(8)) op = PlanBuilder::op(OpKind::host_work, host, Work::chunk_overhead);
      op.calls = static_cast<std::uint32_t>(random.pick(1, 3));
      op.bytes = {random.pick(1, op.kind == OpKind::kernel ? 500'000'000'000 : 5'000'000'000)};
      op.duration = {random.pick(0, kTicksPerSecond / 10)};
      op.host = random.chance(5) ? Memory::pageable : Memory::pinned;
      b.add(op, deps());
    }
    Op collective = PlanBuilder::op(OpKind::collective, comm, meeting.work);
    collective.stride = meeting.stride;
    collective.members = meeting.members;
    collective.domains = meeting.domains;
    collective.bytes = {meeting.bytes};
    b.add(collective, deps());
    ++index;
  }
  return b.take();
}

Cluster random_host(Random& random, std::int64_t places) {
  Cluster c = test::h200_host();
  c.gpus_per_host = places;
  c.gpu.adam.value = {random.chance(2) ? 3e12 : 4.257e12};
  HostLink& link = c.host_link;
  link.h2d.value = {random.real(5e9, 60e9)};
  link.d2h.value = {random.real(5e9, 60e9)};
  link.both.value = {random.real(5e9, 120e9)};
  link.d2h_weight.value = random.real(0.5, 2);
  link.host_one_way.value = {random.real(20e9, 400e9)};
  link.host_both.value = {random.real(20e9, 600e9)};
  if (random.chance(2))
    link.both_by_size.value = {
        {64_MiB, {random.real(5e9, 120e9)}}, {700_MiB, {random.real(5e9, 120e9)}}, {2_GiB, {link.both.value}}};
  link.pageable_h2d.value = {random.real(2e9, 20e9)};
  c.host.sockets = random.pick(1, 2);
  c.topology.gpus_per_switch = random.pick(1, 3);
  const auto maybe = [&](Sourced<BytesPerSecond>& limit, double low, double high) {
    if (random.chance(2)) limit.value = {random.real(low, high)};
  };
  maybe(c.topology.switch_one_way, 10e9, 100e9);
  maybe(c.topology.switch_both, 20e9, 150e9);
  maybe(c.topology.socket_one_way, 20e9, 200e9);
  maybe(c.topology.socket_both, 20e9, 300e9);
  maybe(c.topology.socket_memory, 20e9, 300e9);
  maybe(c.topology.inter_socket, 10e9, 100e9);
  c.topology.remote_memory.value = random.chance(2) ? 0 : random.real(0, 1);
  c.interconnect.copy_interference.value = random.real(0, 0.5);
  c.interconnect.network.value = {random.real(10e9, 60e9)};
  return c;
}

std::vector<Meeting> random_meetings(Random& random, std::int64_t places) {
  std::vector<Meeting> meetings(static_cast<std::size_t>(random.pick(1, 6)));
  const bool other_hosts = random.chance(2);
  for (Meeting& m : meetings) {
    m.stride = places % 2 == 0 && random.chance(2) ? 2 : 1;
    m.members = static_cast<std::uint32_t>(places / m.stride) * (other_hosts ? 2 : 1);
    m.domains = other_hosts ? 2 : 1;
    m.work = random.chance(2) ? Work::all_gather : Work::all_reduce;
    m.bytes = random.pick(1, 20'000'000'000);
  }
  return meetings;
}

/// Folds what is alike and simulates.
struct Simulated {
  std::vector<Timeline> timelines;  // by class
  std::vector<std::uint32_t> class_of_place;
};

Simulated fold_and_simulate(const std::vector<const Plan*>& plans, std::int64_t first_rank, const Cluster& cluster) {
  std::vector<std::uint32_t> kinds;
  std::vector<sim::GroupForm> forms;
  for (const Plan* plan : plans) {
    kinds.push_back(static_cast<std::uint32_t>(std::find(plans.begin(), plans.end(), plan) - plans.begin()));
    for (const Op& op : plan->ops)
      if (op.kind == OpKind::collective) forms.push_back({op.stride, op.members});
  }
  std::sort(forms.begin(), forms.end());
  forms.erase(std::unique(forms.begin(), forms.end()), forms.end());
  sim::HostRuns host{.plans = {},
                     .class_of_place = sim::classes_of_places(kinds, first_rank, cluster, forms),
                     .first_rank = first_rank};
  for (std::size_t p = 0; p < plans.size(); ++p)
    if (host.class_of_place[p] == host.plans.size()) host.plans.push_back(plans[p]);
  Simulated result{.timelines = {}, .class_of_place = host.class_of_place};
  sim::Simulator().run(host, cluster, result.timelines);
  return result;
}

std::size_t classes_of(const Simulated& simulated) { return simulated.timelines.size(); }

}  // namespace

TEST_CASE("host: 300 random hosts agree with every place simulated by itself") {
  Random random(11);
  std::size_t folded = 0;
  for (int round = 0; round < 300; ++round) {
    const std::int64_t places = random.pick(1, 6);
    const Cluster cluster = random_host(random, places);
    const std::vector<Meeting> meetings = random_meetings(random, places);
    std::vector<Plan> kinds;
    for (std::int64_t k = random.pick(1, places); k > 0; --k) kinds.push_back(random_rank(random, meetings));
    std::vector<const Plan*> plans;
    for (std::int64_t p = 0; p < places; ++p)
      plans.push_back(&kinds[static_cast<std::size_t>(random.pick(0, static_cast<std::int64_t>(kinds.size()) - 1))]);
    const std::int64_t first_rank = places * random.pick(0, 3);
    const Simulated simulated = fold_and_simulate(plans, first_rank, cluster);
    folded += static_cast<std::size_t>(places) - classes_of(simulated);
    const auto expected = test::naive_simulate(plans, first_rank, cluster);
    for (std::size_t p = 0; p < plans.size(); ++p) {
      const Timeline& t = simulated.timelines[simulated.class_of_place[p]];
      for (std::size_t i = 0; i < plans[p]->ops.size(); ++i) {
        CAPTURE(round, p, i, static_cast<int>(plans[p]->ops[i].kind), places, classes_of(simulated));
        REQUIRE(std::abs(to_seconds(t.start[i]).value - expected[p][i].start) < 2e-9);
        REQUIRE(std::abs(to_seconds(t.end[i]).value - expected[p][i].end) < 2e-9);
      }
    }
  }
  CHECK(folded > 100);  // folding was exercised
}
