// verify(): buffers that outlive their phase, and the peak that a budget is compared with; by hand, by moving and
// deleting releases of lowered plans, and against all moments of all orders of small plans.
#include <algorithm>
#include <random>
#include <vector>

#include "models/timeline.hpp"
#include "planner/peak_bound.hpp"
#include "planner/verify.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"
#include "tests/planner/plan_by_hand.hpp"

using namespace ebb;
using test::ByHand;

namespace {

std::size_t count(const std::vector<Hazard>& hazards, HazardKind kind) {
  return static_cast<std::size_t>(
      std::count_if(hazards.begin(), hazards.end(), [&](const Hazard& hazard) { return hazard.kind == kind; }));
}

/// The first op after the last working op of `phase` that is of another phase; the number of ops when there is none.
std::uint32_t follower(const Plan& plan, Phase phase) {
  std::uint32_t end = 0;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const OpKind kind = plan.ops[i].kind;
    if (plan.ops[i].phase == phase && kind != OpKind::allocate && kind != OpKind::release) end = i + 1;
  }
  while (end < plan.ops.size() && plan.ops[end].phase == phase) ++end;
  return end;
}

}  // namespace

TEST_CASE("what a lowering allocates says when it is gone, and every release that comes later is found") {
  std::size_t moved = 0;
  for (const test::RankCase& rank : test::rank_cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      const Plan plan = lower(rank.rank, candidate);
      INFO(rank.name << ": " << test::text_of(candidate));
      REQUIRE(verify(plan).empty());
      for (const Buffer& buffer : plan.buffers) CHECK((buffer.initial || buffer.ends_with));
      for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
        const Op& op = plan.ops[i];
        if (op.kind != OpKind::release) continue;
        if (!plan.buffers[op.buffer.index].ends_with)
          continue;  // tidal's: leaves when its room is needed, and comes back
        const std::uint32_t next = follower(plan, *plan.buffers[op.buffer.index].ends_with);
        if (next == plan.ops.size()) continue;  // nothing follows the phase: the end of the plan is its end
        REQUIRE(i < next);
        const std::vector<Hazard> hazards = verify(test::with_moved(plan, i, next));
        const auto late = std::find_if(hazards.begin(), hazards.end(), [&](const Hazard& hazard) {
          return hazard.kind == HazardKind::outlives_phase && hazard.buffer == op.buffer;
        });
        REQUIRE(late != hazards.end());
        CHECK(late->second == OpId{next - 1});  // the follower, which the release has jumped over
        CHECK(late->missing == Edge{OpId{next}, OpId{next - 1}});
        ++moved;
      }
    }
  }
  CHECK(moved > 300);
}

// An offload that silently does nothing: the state that should leave stays, and comes back on top of itself.
TEST_CASE("every deleted release is found") {
  std::size_t deleted = 0;
  std::size_t stayed = 0;
  for (const test::RankCase& rank : test::rank_cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      const Plan plan = lower(rank.rank, candidate);
      INFO(rank.name << ": " << test::text_of(candidate));
      for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
        if (plan.ops[i].kind != OpKind::release) continue;
        const Buffer& buffer = plan.buffers[plan.ops[i].buffer.index];
        const std::vector<Hazard> hazards = verify(test::without_op(plan, i));
        CHECK(count(hazards, HazardKind::leak) + count(hazards, HazardKind::outlives_phase) > 0);
        if (buffer.initial) stayed += count(hazards, HazardKind::outlives_phase);
        ++deleted;
      }
    }
  }
  CHECK(deleted > 300);
  CHECK(stayed > 20);
}

TEST_CASE("a buffer that outlives its phase is named with both ops, by hand") {
  ByHand by;
  const BufferId window = by.buffer();
  by.plan.buffers[window.index].name = "window";
  by.plan.buffers[window.index].ends_with = Phase::step;
  by.phase = Phase::step;
  const auto work = [&](Phase phase) {
    return by.add({.kind = OpKind::compute, .phase = phase, .stream = kComputeStream});
  };
  SECTION("released after the first op of what follows") {
    const OpId began = by.allocate(window);
    work(Phase::step);
    const OpId next = work(Phase::gather);
    const OpId late = by.release(window);
    const std::vector<Hazard> hazards = verify(by.plan);
    REQUIRE(hazards.size() == 1);
    CHECK(hazards[0].kind == HazardKind::outlives_phase);
    CHECK(hazards[0].first == began);
    CHECK(hazards[0].second == next);
    CHECK(hazards[0].missing == Edge{late, next});
    CHECK(hazards[0].text ==
          "allocate 0 is still alive at compute 2, after the end of step [window]; needs: release 3 -> compute 2");
  }
  SECTION("released in time") {
    by.allocate(window);
    work(Phase::step);
    by.release(window);
    work(Phase::gather);
    CHECK(verify(by.plan).empty());
  }
  SECTION("the phase goes on after another: its last op counts") {
    by.allocate(window);
    work(Phase::step);
    work(Phase::gather);
    work(Phase::step);
    by.release(window);
    CHECK(verify(by.plan).empty());
  }
  SECTION("handed back only with an op of what follows") {
    by.allocate(window);
    work(Phase::step);
    const OpId next = by.out(window, {0, 10}, {OpId{0}});
    by.plan.ops[next.index].phase = Phase::gather;
    by.release(window, {}, next);
    const std::vector<Hazard> hazards = verify(by.plan);
    CHECK(count(hazards, HazardKind::outlives_phase) == 2);  // alive at the copy, and held by it
  }
  SECTION("lives again when the phase is over: no concern of it") {
    by.allocate(window);
    work(Phase::step);
    by.release(window);
    work(Phase::gather);
    by.allocate(window);
    by.release(window);
    CHECK(verify(by.plan).empty());
  }
}

TEST_CASE("the bound is the simulated peak of every lowered plan whose storage comes back in order, and never below") {
  std::size_t equal = 0;
  std::size_t above = 0;
  for (const test::RankCase& rank : test::rank_cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const Plan plan = lower(rank.rank, candidate);
      const Bytes simulated = summarize(plan, sim::simulate(plan, rank.job->cluster, {})).peak_held;
      const PeakBound bound = peak_bound(plan);
      CHECK(bound.bytes >= simulated);
      ++(bound.bytes == simulated ? equal : above);
      if (candidate.policy != Policy::windowed) CHECK(bound.bytes == simulated);
      CHECK(verify(plan, bound.bytes).empty());
      const std::vector<Hazard> over = verify(plan, bound.bytes - Bytes{1});
      REQUIRE(over.size() == 1);
      CHECK(over[0].kind == HazardKind::over_budget);
      CHECK(over[0].first == bound.at);
    }
  }
  CHECK(equal > 60);
  CHECK(above == 21);  // windowed: nothing bounds how long its masters take to leave
}

TEST_CASE("an excess names the op, the buffers alive, and the hand-back that came too late, by hand") {
  ByHand by;
  const BufferId always = by.buffer(true);
  const BufferId old = by.buffer();
  const BufferId fresh = by.buffer();
  by.plan.buffers[always.index] = {"parameters", Memory::device, {100}, true};
  by.plan.buffers[old.index] = {"old", Memory::device, {30}, false};
  by.plan.buffers[fresh.index] = {"fresh", Memory::device, {50}, false};
  by.plan.buffers.push_back({"host state", Memory::pinned, {1'000'000}, true});
  const OpId began = by.allocate(old);
  const OpId out = by.out(old, {0, 10}, {began});
  by.release(old, {}, out);
  const OpId next = by.allocate(fresh);
  by.release(fresh);

  CHECK(verify(by.plan, Bytes{180}).empty());
  const std::vector<Hazard> hazards = verify(by.plan, Bytes{160});
  REQUIRE(hazards.size() == 1);
  CHECK(hazards[0].first == next);
  CHECK(hazards[0].second == out);
  CHECK(hazards[0].buffer == always);
  CHECK(hazards[0].missing == Edge{out, next});
  CHECK(hazards[0].text ==
        "180 bytes may be alive at allocate 3, 20 over the budget of 160 [parameters 100, fresh 50, old 30]; needs: "
        "copy-d2h 1 -> allocate 3");
  CHECK(verify(test::with_dep(by.plan, next, out), Bytes{160}).empty());

  const std::vector<Hazard> before = verify(by.plan, Bytes{99});
  REQUIRE(before.size() == 1);
  CHECK(before[0].text.rfind("180 bytes may be alive at allocate 3, 81 over", 0) == 0);
  Plan idle;
  idle.buffers = {{"parameters", Memory::device, {100}, true}};
  CHECK(verify(idle, Bytes{100}).empty());
  CHECK(verify(idle, Bytes{99})[0].text ==
        "100 bytes may be alive before the first op, 1 over the budget of 99 [parameters 100]");
}

namespace {

/// Buffers that are allocated, perhaps used by a copy, and released, on random streams with random dependencies.
Plan random_lives(std::mt19937& random, bool one_stream) {
  ByHand by;
  by.plan.ops.clear();
  const auto stream = [&] { return StreamId{static_cast<std::uint32_t>(random() % 4)}; };
  const auto deps = [&](std::vector<OpId> least) {
    while (!by.plan.ops.empty() && random() % 3 == 0) {
      least.push_back({static_cast<std::uint32_t>(random() % by.plan.ops.size())});
    }
    return least;
  };
  std::vector<std::pair<BufferId, OpId>> alive;
  while (by.plan.ops.size() < 11) {
    if (alive.empty() || random() % 2 == 0) {
      const BufferId b = by.buffer();
      by.plan.buffers[b.index].bytes = {1 + static_cast<std::int64_t>(random() % 100)};
      const StreamId where = one_stream ? kComputeStream : stream();
      alive.emplace_back(b, by.add({.kind = OpKind::allocate, .stream = where, .buffer = b}, deps({})));
      continue;
    }
    const std::size_t pick = random() % alive.size();
    const auto [b, began] = alive[pick];
    alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(pick));
    OpId after;
    if (random() % 2 == 0) after = by.add({.kind = OpKind::compute, .stream = stream(), .buffer = b}, deps({began}));
    by.add({.kind = OpKind::release, .stream = stream(), .buffer = b, .after = after}, deps({began}));
  }
  return by.plan;
}

/// Highest live bytes over all moments of all orders: over all sets of ended ops that hold whatever their ops wait for.
std::int64_t most_at_any_moment(const Plan& plan) {
  const std::size_t n = plan.ops.size();
  std::vector<std::uint32_t> needs(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (const OpId dep : plan.deps_of(plan.ops[i])) needs[i] |= 1U << dep.index;
    for (std::size_t j = 0; j < i; ++j) {
      if (plan.ops[j].stream == plan.ops[i].stream) needs[i] |= 1U << j;
    }
  }
  std::int64_t most = 0;
  for (std::uint32_t ended = 0; ended < (1U << n); ++ended) {
    bool possible = true;
    std::int64_t live = 0;
    for (std::size_t i = 0; i < n && possible; ++i) {
      const Op& op = plan.ops[i];
      if (!((ended >> i) & 1U)) continue;
      possible = (needs[i] & ~ended) == 0;
      const std::int64_t bytes = op.buffer.valid() ? plan.buffers[op.buffer.index].bytes.value : 0;
      if (op.kind == OpKind::allocate) live += bytes;
      const bool back = !op.after.valid() || ((ended >> op.after.index) & 1U);
      if (op.kind == OpKind::release && back) live -= bytes;
    }
    if (possible) most = std::max(most, live);
  }
  return most;
}

}  // namespace

TEST_CASE("the bound is exact for allocations on one stream, and never too low") {
  std::mt19937 random(3);
  int loose = 0;
  for (int round = 0; round < 300; ++round) {
    const bool one_stream = round % 2 == 0;
    const Plan plan = random_lives(random, one_stream);
    const std::int64_t exact = most_at_any_moment(plan);
    const std::int64_t bound = peak_bound(plan).bytes.value;
    CHECK(bound >= exact);
    if (one_stream) CHECK(bound == exact);
    loose += bound > exact ? 1 : 0;
  }
  CHECK(loose > 0);  // on several streams it is a bound only
}
