// Broken plans and clusters end at an assertion, before they corrupt memory or loop for ever. Each runs in a process of
// its own, because an assertion aborts.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <limits>

#include "sim/op_cost.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/sim/plan_builder.hpp"

using namespace ebb;
using test::PlanBuilder;

namespace {

/// Whether simulating aborts, as an assertion does.
bool aborts(const Plan& plan, const Cluster& cluster = test::h200_host(), std::int64_t ranks = 1) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // not the test runner's handler
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(1);
    sim::simulate(plan, cluster, {.ranks_per_host = ranks});
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

Plan one_copy(std::int64_t bytes) {
  PlanBuilder b;
  b.h2d(b.stream(StreamKind::h2d), bytes);
  return b.take();
}

}  // namespace

TEST_CASE("hostile: a step longer than time is counted is the user's error, not a bug") {
  Cluster slow = test::h200_host();
  slow.host_link.latency.value = {1e9};
  CHECK_THROWS_AS(sim::simulate(one_copy(1000), slow, {}), InputError);
}

TEST_CASE("hostile: many calls, each just short enough") {
  for (const bool issue : {false, true}) {
    Cluster slow = test::h200_host();
    (issue ? slow.calls.copy : slow.host_link.latency).value = {376'464.165770};
    PlanBuilder b;
    b.h2d(b.stream(StreamKind::h2d), 1000, {}, 49);
    CHECK_THROWS_AS(sim::simulate(b.take(), slow, {}), InputError);
  }
}

TEST_CASE("hostile: a collective that copies stop entirely goes on when they end") {
  Cluster c = test::issues_at_once(test::h200_host());
  c.interconnect.copy_interference.value = 1;
  PlanBuilder b;
  const OpId copy = b.h2d(b.stream(StreamKind::h2d), 1'000'000'000);
  Op gather = PlanBuilder::op(OpKind::collective, b.stream(StreamKind::comm), Work::all_gather);
  gather.members = 2;
  gather.bytes = {1'000'000'000};
  const OpId collective = b.add(gather);
  const Timeline t = sim::simulate(b.take(), c, {});
  CHECK(t.end[collective.index] > t.end[copy.index]);
  CHECK(to_seconds(t.end[collective.index]).value < 0.1);
}

TEST_CASE("hostile: a sound plan does not abort") { REQUIRE_FALSE(aborts(one_copy(1000))); }

TEST_CASE("hostile: dependencies on itself, on later ops and on ops that do not exist") {
  for (const std::uint32_t dep : {0U, 1U, 7U, 0xffffffffU}) {
    PlanBuilder b;
    const StreamId stream = b.stream(StreamKind::compute);
    b.compute(stream, {1}, {OpId{dep}});
    b.compute(stream, {1});
    REQUIRE(aborts(b.take()));
  }
}

TEST_CASE("hostile: streams and dependency lists out of range") {
  Plan plan = one_copy(1);
  plan.ops[0].stream = {};
  REQUIRE(aborts(plan));
  plan = one_copy(1);
  plan.ops[0].deps_begin = 0xffffffffU;
  plan.ops[0].deps_count = 0xffffffffU;
  REQUIRE(aborts(plan));
}

TEST_CASE("hostile: times that do not fit") {
  REQUIRE(aborts(one_copy(-1)));
  const Plan endless = one_copy(std::numeric_limits<std::int64_t>::max());
  CHECK_THROWS_AS(sim::simulate(endless, test::h200_host(), {}), InputError);
  PlanBuilder b;
  const StreamId stream = b.stream(StreamKind::compute);
  for (int i = 0; i < 20; ++i) b.compute(stream, sim::kLongestOp);
  CHECK_THROWS_AS(sim::simulate(b.take(), test::h200_host(), {}), InputError);
  PlanBuilder backwards;
  backwards.compute(backwards.stream(StreamKind::compute), {-1});
  REQUIRE(aborts(backwards.take()));
}

TEST_CASE("hostile: figures that are zero, negative or not numbers") {
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    Cluster cluster = test::h200_host();
    cluster.host_link.both.value = {bad};
    REQUIRE(aborts(one_copy(1), cluster));
    cluster = test::h200_host();
    cluster.host_link.d2h_weight.value = bad;
    REQUIRE(aborts(one_copy(1), cluster));
  }
  Cluster cluster = test::h200_host();
  cluster.host_link.latency.value = {std::numeric_limits<double>::quiet_NaN()};
  REQUIRE(aborts(one_copy(1), cluster));
  REQUIRE(aborts(one_copy(1), test::h200_host(), 0));
}
