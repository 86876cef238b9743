// verify(): finds planted faults, in hand-made plans, by deleting every dependency of real ones, and against a naive
// check of all pairs.
#include "planner/verify.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "models/op_order.hpp"
#include "planner/accesses.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/planner/lowering_cases.hpp"
#include "tests/planner/plan_by_hand.hpp"

using namespace ebb;
using test::ByHand;
using test::with_dep;
using test::without_dep;

namespace {

bool has(const std::vector<Hazard>& hazards, HazardKind kind) {
  return std::any_of(hazards.begin(), hazards.end(), [&](const Hazard& hazard) { return hazard.kind == kind; });
}

/// reach[a][b]: a path leads from op a to op b, by stream order and dependencies. O(n^3), for small plans.
std::vector<std::vector<bool>> reachability(const Plan& plan) {
  const std::size_t n = plan.ops.size();
  std::vector<std::vector<bool>> reach(n, std::vector<bool>(n, false));
  for (std::size_t b = 0; b < n; ++b) {
    std::vector<std::size_t> predecessors;
    for (const OpId dep : plan.deps_of(plan.ops[b])) predecessors.push_back(dep.index);
    for (std::size_t a = b; a-- > 0;) {
      if (plan.ops[a].stream == plan.ops[b].stream) predecessors.push_back(a);
    }
    for (const std::size_t p : predecessors) {
      reach[p][b] = true;
      for (std::size_t a = 0; a < n; ++a) reach[a][b] = reach[a][b] || reach[a][p];
    }
  }
  return reach;
}

bool overlap(const Op& a, const Op& b) {
  const bool everything = a.range.begin >= a.range.end || b.range.begin >= b.range.end;
  if (everything || accesses_of(a).counting != accesses_of(b).counting) return true;
  return a.range.begin < b.range.end && b.range.begin < a.range.end;
}

/// Whether content of a and b conflicts: the same state on the same side, overlapping elements, one writes.
bool content_conflict(const Op& a, const Op& b) {
  if (!overlap(a, b)) return false;
  const Accesses of_a = accesses_of(a);
  const Accesses of_b = accesses_of(b);
  for (const ContentAccess& x : of_a.contents()) {
    for (const ContentAccess& y : of_b.contents()) {
      if (x.side == y.side && (x.states & y.states) && (x.write || y.write)) return true;
    }
  }
  return false;
}

// Megatron-LM's managers share their streams, and a copy in waits for the whole stream of copies out: the first refill
// of the expert optimizer's manager waits for the last copy out of the dense one's, though no byte needs it.
bool waits_for_other_manager(const Plan& plan, const Op& op, const Op& dep) {
  return plan.candidate.policy == Policy::windowed && op.kind == OpKind::copy_h2d && dep.kind == OpKind::copy_d2h &&
         op.states == kMoments && op.buffer != dep.buffer;
}

}  // namespace

TEST_CASE("every lowered plan is safe") {
  for (const test::RankCase& rank : test::rank_cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const std::vector<Hazard> hazards = verify(lower(rank.rank, candidate));
      CHECK(hazards.empty());
      for (const Hazard& hazard : hazards) UNSCOPED_INFO(hazard.text);
    }
  }
}

TEST_CASE("no dependency of a lowered plan can be deleted unnoticed") {
  std::size_t deleted = 0;
  std::size_t excused = 0;
  for (const test::RankCase& rank : test::rank_cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const Plan plan = lower(rank.rank, candidate);
      for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
        const Op& op = plan.ops[i];
        for (std::uint32_t d = 0; d < op.deps_count; ++d) {
          const OpId dep = plan.deps[op.deps_begin + d];
          const Plan mutant = without_dep(plan, op.deps_begin + d);
          INFO("op " << i << " (" << name_of(op.kind) << ") without op " << dep.index << " ("
                     << name_of(plan.ops[dep.index].kind) << ")");
          ++deleted;
          if (Order(mutant).before(dep, {i}) || !verify(mutant).empty()) continue;
          CHECK(waits_for_other_manager(plan, op, plan.ops[dep.index]));
          ++excused;
        }
      }
    }
  }
  CHECK(deleted > 2000);
  CHECK(excused == 4);  // two ranks with experts, two candidates with more than one chunk
}

// Each finding names an edge. Putting in exactly this edge removes the finding, and edge by edge the plan is sound
// again.
TEST_CASE("the missing edges that are named repair every plan with a deleted dependency") {
  std::size_t found = 0;
  for (const test::RankCase& rank : test::rank_cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const Plan plan = lower(rank.rank, candidate);
      for (std::size_t position = 0; position < plan.deps.size(); ++position) {
        Plan mutant = without_dep(plan, position);
        std::vector<Hazard> hazards = verify(mutant);
        for (std::size_t edges = 0; !hazards.empty() && edges < plan.ops.size(); ++edges) {
          ++found;
          const Hazard hazard = hazards.front();
          INFO(hazard.text);
          REQUIRE(hazard.missing);
          REQUIRE(hazard.missing->first < hazard.missing->second);
          REQUIRE_FALSE(Order(mutant).before(hazard.missing->first, hazard.missing->second));
          mutant = with_dep(mutant, hazard.missing->second, hazard.missing->first);
          hazards = verify(mutant);
          CHECK(std::none_of(hazards.begin(), hazards.end(), [&](const Hazard& other) {
            return other.kind == hazard.kind && other.first == hazard.first && other.second == hazard.second;
          }));
        }
        CHECK(hazards.empty());
      }
    }
  }
  CHECK(found > 2000);
}

TEST_CASE("the builder leaves no redundant dependency") {
  for (const test::RankCase& rank : test::rank_cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      const Plan plan = lower(rank.rank, candidate);
      for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
        for (std::uint32_t d = 0; d < plan.ops[i].deps_count; ++d) {
          const std::size_t position = plan.ops[i].deps_begin + d;
          CHECK_FALSE(Order(without_dep(plan, position)).before(plan.deps[position], {i}));
        }
      }
    }
  }
}

TEST_CASE("a release that forgets its `after` hands storage back under a copy") {
  const test::RankCase measured = test::measured_case();
  Plan plan = lower(measured.rank, {.policy = Policy::windowed, .chunk_size_mb = 512});
  std::size_t forgotten = 0;
  for (Op& op : plan.ops) {
    if (op.kind != OpKind::release || !op.after.valid()) continue;
    const OpId after = std::exchange(op.after, OpId::none());
    CHECK(has(verify(plan), HazardKind::use_after_release));
    op.after = after;
    ++forgotten;
  }
  CHECK(forgotten == 3);  // the masters and two slots
  CHECK(verify(plan).empty());
}

TEST_CASE("hand-made faults are found and named") {
  ByHand by;
  const BufferId b = by.buffer();
  const ElementRange range{0, 10};

  SECTION("a sound chunk has no hazard") {
    const OpId a = by.allocate(b);
    const OpId in = by.in(b, range, {a});
    const OpId step = by.adam(b, range, {in});
    const OpId out = by.out(b, range, {step});
    by.release(b, {out});
    CHECK(verify(by.plan).empty());
  }
  SECTION("a copy in that does not wait for the allocation") {
    by.allocate(b);
    const OpId in = by.in(b, range);
    const OpId step = by.adam(b, range, {in});
    by.release(b, {step});
    CHECK(has(verify(by.plan), HazardKind::use_before_allocate));
  }
  SECTION("a copy before the allocation in the plan") {
    by.in(b, range);
    by.allocate(b);
    by.release(b);
    CHECK(has(verify(by.plan), HazardKind::use_before_allocate));
  }
  SECTION("a release beside a copy out") {
    const OpId a = by.allocate(b);
    const OpId in = by.in(b, range, {a});
    const OpId step = by.adam(b, range, {in});
    const OpId out = by.out(b, range, {step});
    by.release(b);
    const std::vector<Hazard> hazards = verify(by.plan);
    REQUIRE(hazards.size() == 1);
    CHECK(hazards[0].kind == HazardKind::use_after_release);
    CHECK(hazards[0].first == out);
    CHECK(hazards[0].text ==
          "copy-d2h 3 may still run when the storage is handed back by release 4 [b]; needs: copy-d2h 3 -> "
          "release 4");
    CHECK(hazards[0].missing == Edge{out, OpId{4}});
  }
  SECTION("the same release is sound when it names the copy in `after`") {
    const OpId a = by.allocate(b);
    const OpId in = by.in(b, range, {a});
    const OpId step = by.adam(b, range, {in});
    const OpId out = by.out(b, range, {step});
    by.release(b, {}, out);
    CHECK(verify(by.plan).empty());
  }
  SECTION("a use after the release in the plan") {
    by.allocate(b);
    const OpId gone = by.release(b);
    by.in(b, range, {gone});
    CHECK(has(verify(by.plan), HazardKind::use_after_release));
  }
  SECTION("released twice") {
    by.allocate(b);
    by.release(b);
    by.release(b);
    CHECK(has(verify(by.plan), HazardKind::double_release));
  }
  SECTION("never released") {
    by.allocate(b);
    const std::vector<Hazard> hazards = verify(by.plan);
    REQUIRE(hazards.size() == 1);
    CHECK(hazards[0].kind == HazardKind::leak);
    CHECK(hazards[0].buffer == b);
  }
  SECTION("allocated while alive") {
    by.allocate(b);
    by.allocate(b);
    by.release(b);
    CHECK(has(verify(by.plan), HazardKind::leak));
  }
  SECTION("an initial buffer may leave and return, or leave for good") {
    const BufferId state = by.buffer(true);
    const OpId out = by.out(state, range);
    const OpId gone = by.release(state, {out});
    const OpId back = by.allocate(state, {gone});
    by.in(state, range, {back});
    by.allocate(b);
    by.release(b);
    CHECK(verify(by.plan).empty());
  }
  SECTION("a dependency on a later op") {
    by.allocate(b);
    by.release(b, {OpId{7}});
    CHECK(has(verify(by.plan), HazardKind::not_topological));
  }
  SECTION("a slot that is refilled while it is copied out") {
    const OpId a = by.allocate(b);
    const OpId in = by.in(b, {0, 10}, {a});
    const OpId step = by.adam(b, {0, 10}, {in});
    const OpId out = by.out(b, {0, 10}, {step});
    const OpId next = by.in(b, {10, 20}, {step});
    by.release(b, {out, next});
    const std::vector<Hazard> hazards = verify(by.plan);
    REQUIRE(hazards.size() == 1);
    CHECK(hazards[0].kind == HazardKind::unordered_access);
    CHECK(hazards[0].first == out);
    CHECK(hazards[0].second == next);
  }
  SECTION("host state read while it is written") {
    const BufferId other = by.buffer();
    const OpId a = by.allocate(b);
    const OpId c = by.allocate(other);
    const OpId out = by.out(b, {0, 10}, {a});
    const OpId in = by.in(other, {5, 6}, {c});
    by.release(b, {out, in});
    by.release(other);
    CHECK(has(verify(by.plan), HazardKind::unordered_access));
  }
  SECTION("other states or other elements of the host are no conflict") {
    const BufferId other = by.buffer();
    const OpId a = by.allocate(b);
    const OpId c = by.allocate(other);
    const OpId out = by.out(b, {0, 10}, {a}, kMoments);
    const OpId masters = by.in(other, {0, 10}, {c}, kMaster);
    by.release(b, {out, masters});
    by.release(other);
    CHECK(verify(by.plan).empty());
  }
  SECTION("an op that does not wait for the host that issues it") {
    by.allocate(b);
    by.add({.kind = OpKind::host_wait, .stream = kHost});
    by.release(b);
    CHECK(has(verify(by.plan), HazardKind::issued_early));
  }
}

TEST_CASE("vector clocks agree with paths in the graph") {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Plan plan;
    plan.streams.resize(1 + random() % 6);
    for (std::uint32_t i = 0; i < 40; ++i) {
      Op op;
      op.stream = {static_cast<std::uint32_t>(random() % plan.streams.size())};
      op.deps_begin = static_cast<std::uint32_t>(plan.deps.size());
      while (i > 0 && random() % 2 == 0) plan.deps.push_back({static_cast<std::uint32_t>(random() % i)});
      op.deps_count = static_cast<std::uint32_t>(plan.deps.size()) - op.deps_begin;
      plan.ops.push_back(op);
    }
    const auto reach = reachability(plan);
    const Order order(plan);
    bool same = true;
    for (std::uint32_t a = 0; a < 40; ++a) {
      for (std::uint32_t b = 0; b < 40; ++b) same = same && order.before({a}, {b}) == reach[a][b];
    }
    CHECK(same);
  }
}

// verify() looks at neighbours only and trusts transitivity; this looks at all pairs. Content conflicts alone: storage
// has no simpler definition to compare with.
TEST_CASE("unordered content is found exactly when some pair of ops conflicts") {
  std::mt19937 random(11);
  int unsafe = 0;
  for (int round = 0; round < 400; ++round) {
    ByHand by;
    std::vector<BufferId> buffers;  // one an op, so that storage never conflicts
    for (std::uint32_t i = 0; i < 7; ++i) {
      const auto begin = static_cast<std::int64_t>(random() % 4);
      const ElementRange range{begin, random() % 5 == 0 ? begin : begin + 1 + static_cast<std::int64_t>(random() % 3)};
      std::vector<OpId> deps;
      while (i > 0 && random() % 4 != 0) deps.push_back({static_cast<std::uint32_t>(random() % i)});
      const auto states = static_cast<std::uint8_t>(1 + random() % 7);
      const BufferId b = by.buffer(true);
      switch (random() % 4) {
        case 0:
          by.in(b, range, deps, states);
          break;
        case 1:
          by.out(b, range, deps, states);
          break;
        case 2:
          by.adam(b, range, deps);
          break;
        default:
          by.add({.kind = OpKind::collective,
                  .work = Work::reduce_scatter,
                  .states = kGrads,
                  .stream = kComputeStream,
                  .range = range},
                 deps);
      }
    }
    const auto reach = reachability(by.plan);
    bool conflict = false;
    for (std::size_t a = 0; a < by.plan.ops.size(); ++a) {
      for (std::size_t b = a + 1; b < by.plan.ops.size(); ++b) {
        conflict = conflict || (!reach[a][b] && content_conflict(by.plan.ops[a], by.plan.ops[b]));
      }
    }
    unsafe += conflict ? 1 : 0;
    CHECK(has(verify(by.plan), HazardKind::unordered_access) == conflict);
  }
  CHECK(unsafe > 50);
  CHECK(unsafe < 350);
}

TEST_CASE("the critical path is the longest chain, by hand") {
  ByHand by;
  const BufferId b = by.buffer(true);
  const OpId in = by.in(b, {0, 10});
  const OpId other = by.out(b, {20, 30});
  const OpId step = by.adam(b, {0, 10}, {in, other});
  const OpId out = by.out(b, {0, 10}, {step});
  Timeline timeline;
  timeline.start = {{0}, {0}, {50}, {60}};
  timeline.end = {{50}, {40}, {60}, {100}};
  CHECK(critical_path(by.plan, timeline) == std::vector<OpId>{in, step, out});
  CHECK(critical_path(Plan{}, Timeline{}).empty());
}

TEST_CASE("in a predicted timeline the critical path is as long as the step, but for what the host thread takes") {
  for (const test::RankCase& rank : test::rank_cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      INFO(rank.name << ": " << test::text_of(candidate));
      const Plan plan = lower(rank.rank, candidate);
      const auto path_and_step = [&](const Cluster& cluster) {
        const Timeline timeline = sim::simulate(plan, cluster, {});
        Ticks sum{0};
        for (const OpId op : critical_path(plan, timeline)) sum += timeline.end[op.index] - timeline.start[op.index];
        return std::pair{sum.value, summarize(plan, timeline).total.value};
      };
      Cluster at_once = rank.job->cluster;
      Calls& calls = at_once.calls;
      for (auto* cost : {&calls.launch, &calls.copy, &calls.event, &calls.collective, &calls.allocate})
        cost->value = {0};
      CHECK(path_and_step(at_once).first == path_and_step(at_once).second);
      const auto [path, step] = path_and_step(rank.job->cluster);
      CHECK(path <= step);
      CHECK(static_cast<double>(path) > 0.98 * static_cast<double>(step));
    }
  }
}
