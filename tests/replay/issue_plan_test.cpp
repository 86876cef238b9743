// Which events the host thread records and waits for, on plans written by hand: the expectation is counted from the
// plan's text, not computed.
#include "replay/issue_plan.hpp"

#include <vector>

#include "planner/plan_builder.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using replay::IssuePlan;

namespace {

/// In, Adam, out for each of `chunks` on one slot, then the host waits: pipelined's core, depth 1.
Plan one_slot(int chunks) {
  Plan plan;
  PlanBuilder build(plan, 16);
  const BufferId slot = build.buffer("slot", 0, {512}, Phase::step);
  OpId free = build.allocate(slot, Phase::step);
  for (int k = 0; k < chunks; ++k) {
    const OpId in = build.add({.kind = OpKind::copy_h2d, .phase = Phase::step, .stream = kH2d, .buffer = slot}, {free});
    const OpId adam =
        build.add({.kind = OpKind::kernel, .phase = Phase::step, .stream = kComputeStream, .buffer = slot}, {in});
    free = build.add({.kind = OpKind::copy_d2h, .phase = Phase::step, .stream = kD2h, .buffer = slot}, {adam});
  }
  build.add({.kind = OpKind::host_wait, .phase = Phase::step, .stream = kHost}, {free});
  build.release(slot, Phase::step);
  return plan;
}

std::vector<std::uint32_t> waits(const IssuePlan& plan, std::uint32_t op) {
  const auto span = plan.waits_of(op);
  return {span.begin(), span.end()};
}

Op on(StreamId stream, OpKind kind = OpKind::kernel) { return {.kind = kind, .phase = Phase::step, .stream = stream}; }

/// PlanBuilder drops what is implied; a plan may hold such dependencies all the same.
void depend(Plan& plan, Op op, std::vector<std::uint32_t> deps) {
  op.deps_begin = static_cast<std::uint32_t>(plan.deps.size());
  op.deps_count = static_cast<std::uint32_t>(deps.size());
  for (const std::uint32_t dep : deps) plan.deps.push_back({dep});
  plan.ops.push_back(op);
}

}  // namespace

TEST_CASE("each crossing between streams is one wait, and the ops waited for are those with a used event") {
  const Plan plan = one_slot(2);
  const IssuePlan issue = replay::issue_plan(plan);
  // 0 allocate; 1 in, 2 adam, 3 out; 4 in, 5 adam, 6 out; 7 host wait; 8 release.
  REQUIRE(plan.ops.size() == 9);
  const std::vector<std::vector<std::uint32_t>> expected{{}, {0}, {1}, {2}, {3}, {4}, {5}, {6}, {}};
  for (std::uint32_t op = 0; op < 9; ++op) {
    INFO("op " << op);
    CHECK(waits(issue, op) == expected[op]);
    CHECK(issue.steps[op].event_used == (op < 7));
    CHECK(issue.steps[op].on_host == (op == 7));
  }
}

TEST_CASE("what a stream or the host has already waited for is not waited for again") {
  Plan plan;
  plan.streams = {
      {"host", StreamKind::host}, {"a", StreamKind::compute}, {"b", StreamKind::h2d}, {"c", StreamKind::d2h}};
  depend(plan, on({1}), {});                         // 0 on a
  depend(plan, on({1}), {0});                        // 1 on a: the stream's order
  depend(plan, on({2}), {1});                        // 2 on b waits for 1
  depend(plan, on({2}), {0});                        // 3 on b: 0 is before 1
  depend(plan, on({0}, OpKind::host_wait), {2});     // 4: the host knows b up to 2
  depend(plan, on({3}), {4});                        // 5 on c: order of issue
  depend(plan, on({3}), {2});                        // 6 on c: the host has waited for it
  depend(plan, on({3}), {3});                        // 7 on c: 3 is later than what the host knows
  depend(plan, on({0}, OpKind::host_wait), {2, 3});  // 8: only 3 is new
  const IssuePlan issue = replay::issue_plan(plan);
  const std::vector<std::vector<std::uint32_t>> expected{{}, {}, {1}, {}, {2}, {}, {}, {3}, {3}};
  for (std::uint32_t op = 0; op < expected.size(); ++op) {
    INFO("op " << op);
    CHECK(waits(issue, op) == expected[op]);
  }
  std::vector<std::uint32_t> used;
  for (std::uint32_t op = 0; op < issue.steps.size(); ++op) {
    if (issue.steps[op].event_used) used.push_back(op);
  }
  CHECK(used == std::vector<std::uint32_t>{1, 2, 3});
}

TEST_CASE("a release that hands back after another op makes that op's event needed") {
  Plan plan;
  PlanBuilder build(plan, 8);
  const BufferId slot = build.buffer("slot", 0, {512}, Phase::step);
  const OpId room = build.allocate(slot, Phase::step);
  const OpId out = build.add({.kind = OpKind::copy_d2h, .phase = Phase::step, .stream = kD2h, .buffer = slot}, {room});
  build.release(slot, Phase::step, {}, out);
  const IssuePlan issue = replay::issue_plan(plan);
  CHECK(issue.steps[out.index].event_used);
  CHECK(issue.waits_of(2).empty());  // the release itself does not wait
}

TEST_CASE("enqueueing ahead stops at the first op of the host and at the limit of commands") {
  const IssuePlan issue = replay::issue_plan(one_slot(2));
  const std::vector<std::uint32_t> one(9, 1);
  CHECK(replay::ops_ahead(issue, one, 1000) == 7);  // 7 is the host's
  // An op costs its commands, its waits and two time stamps: 3 for the allocation, then 4 each.
  CHECK(replay::ops_ahead(issue, one, 2) == 0);
  CHECK(replay::ops_ahead(issue, one, 3) == 1);
  CHECK(replay::ops_ahead(issue, one, 6) == 1);
  CHECK(replay::ops_ahead(issue, one, 7) == 2);
  std::vector<std::uint32_t> heavy = one;
  heavy[1] = 5000;  // a copy of thousands of tensors, larger than any queue
  CHECK(replay::ops_ahead(issue, heavy, 256) == 1);
}
