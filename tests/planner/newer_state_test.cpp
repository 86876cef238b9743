// verify() knows where the newest value of state lies: by hand, one rule after another, and by making the copies of
// lowered plans move nothing, one at a time, while all order and all storage stay as they are. That sound plans have
// none of these hazards stands in verify_test.cpp (steps) and life_parts_test.cpp (all parts of a life).
#include "planner/newer_state.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "planner/life_parts.hpp"
#include "planner/verify.hpp"
#include "tests/catch.hpp"
#include "tests/planner/life_cases.hpp"
#include "tests/planner/life_part_cases.hpp"
#include "tests/planner/lowering_cases.hpp"
#include "tests/planner/plan_by_hand.hpp"

using namespace ebb;
using test::ByHand;

namespace {

constexpr ElementRange kFirst{0, 10};
constexpr ElementRange kSecond{10, 20};

/// Plans of buffers of state.
class StateByHand : public ByHand {
 public:
  BufferId home(ElementRange holds, std::uint8_t states = kAllState, bool initial = true) {
    const BufferId id = buffer(initial);
    plan.buffers[id.index].name = "home";
    plan.buffers[id.index].role = Role::state;
    plan.buffers[id.index].states = states;
    plan.buffers[id.index].holds = holds;
    return id;
  }
  BufferId slot() {
    const BufferId id = home({}, kAllState, false);
    plan.buffers[id.index].name = "slot";
    return id;
  }
  OpId on_host(Work work, ElementRange range, std::vector<OpId> deps = {}) {
    return add({.kind = OpKind::host_work, .work = work, .states = kAllState, .stream = kHost, .range = range},
               std::move(deps));
  }
};

/// The only hazard.
Hazard only(const Plan& plan) {
  const std::vector<Hazard> hazards = verify(plan);
  INFO(test::told(hazards));
  REQUIRE(hazards.size() == 1);
  return hazards.front();
}

/// `plan` in which copy `id` keeps its time and its place in the order, and moves nothing.
Plan with_idle(const Plan& plan, std::uint32_t id) {
  Plan mutant = plan;
  mutant.ops[id].states = 0;
  mutant.ops[id].buffer = BufferId::none();
  return mutant;
}

bool only_about_state(const std::vector<Hazard>& hazards) {
  return std::all_of(hazards.begin(), hazards.end(), [](const Hazard& hazard) {
    return hazard.kind == HazardKind::stale_read || hazard.kind == HazardKind::lost_state;
  });
}

bool moves_state(const Op& op) {
  const bool copy = op.kind == OpKind::copy_h2d || op.kind == OpKind::copy_d2h;
  return copy && (op.states & kAllState) != 0 && !op.host_buffer.valid() && op.range.numel().value > 0;
}

/// Chunked's second pass for FP8 moves masters out again, as Megatron-LM does, which are on the host anyway.
bool out_again(const Plan& plan, const Op& op) {
  return op.kind == OpKind::copy_d2h && plan.buffers[op.buffer.index].name.find("fp8 chunk") != std::string::npos;
}

}  // namespace

TEST_CASE("a slot that is filled, stepped and emptied twice loses nothing; without a copy out it does") {
  for (const bool out : {true, false}) {
    StateByHand by;
    const BufferId slot = by.slot();
    const OpId room = by.allocate(slot);
    const OpId in = by.in(slot, kFirst, {room});
    OpId free = by.adam(slot, kFirst, {in});
    const OpId stepped = free;
    if (out) free = by.out(slot, kFirst, {free});
    const OpId next = by.in(slot, kSecond, {free});
    by.release(slot, {by.out(slot, kSecond, {by.adam(slot, kSecond, {next})})});
    if (out) {
      CHECK(test::told(verify(by.plan)) == "");
      continue;
    }
    const Hazard hazard = only(by.plan);
    CHECK(hazard.kind == HazardKind::lost_state);
    CHECK(hazard.first == stepped);
    CHECK(hazard.second == next);
    CHECK(hazard.buffer == slot);
    CHECK(hazard.text ==
          "copy-h2d 3 takes the place of the only newest exp_avg, exp_avg_sq, master of elements 0 to 9, whose newest "
          "value is of kernel adam 2 [slot]");
  }
}

TEST_CASE("a release hands back the only newest value") {
  SECTION("of an update") {
    StateByHand by;
    const BufferId slot = by.slot();
    const OpId stepped = by.adam(slot, kFirst, {by.in(slot, kFirst, {by.allocate(slot)})});
    const OpId gone = by.release(slot, {by.out(slot, kFirst, {stepped}, kMoments)});
    const Hazard hazard = only(by.plan);
    CHECK(hazard.kind == HazardKind::lost_state);
    CHECK(hazard.first == stepped);
    CHECK(hazard.second == gone);
    CHECK(hazard.text ==
          "release 4 hands back the only newest master of elements 0 to 9, whose newest value is of kernel adam 2 "
          "[slot]");
  }
  SECTION("of what was there at the start, unless it was copied out") {
    for (const bool out : {true, false}) {
      StateByHand by;
      const BufferId home = by.home(kFirst);
      const OpId gone = out ? by.release(home, {by.out(home, kFirst)}) : by.release(home);
      if (out) {
        CHECK(verify(by.plan).empty());
        continue;
      }
      const Hazard hazard = only(by.plan);
      CHECK(hazard.kind == HazardKind::lost_state);
      CHECK(hazard.first == gone);
      CHECK(hazard.buffer == home);
      CHECK(hazard.text ==
            "release 0 hands back the only newest exp_avg, exp_avg_sq, master of elements 0 to 9, whose newest value "
            "is there since the plan began [home]");
    }
  }
  SECTION("a clean copy may be dropped") {
    StateByHand by;
    const BufferId slot = by.slot();
    by.release(slot, {by.in(slot, kFirst, {by.allocate(slot)})});
    CHECK(verify(by.plan).empty());
  }
  SECTION("what was copied out only in part") {
    StateByHand by;
    const BufferId home = by.home({0, 20});
    by.release(home, {by.out(home, {5, 20})});
    const Hazard hazard = only(by.plan);
    CHECK(hazard.kind == HazardKind::lost_state);
    CHECK(hazard.text.find("elements 0 to 4,") != std::string::npos);
  }
}

TEST_CASE("the host's copy is old as long as the device's is newer") {
  SECTION("a copy in reads it, and overwrites the newest") {
    StateByHand by;
    const BufferId home = by.home(kFirst);
    const OpId in = by.in(home, kFirst);
    const std::vector<Hazard> hazards = verify(by.plan);
    REQUIRE(hazards.size() == 2);
    CHECK(hazards[0].kind == HazardKind::stale_read);
    CHECK(hazards[0].first == in);
    CHECK(hazards[0].buffer == home);
    CHECK(hazards[1].kind == HazardKind::lost_state);
  }
  SECTION("a copy in elsewhere reads it") {
    StateByHand by;
    by.home({0, 20});
    const BufferId slot = by.slot();
    by.release(slot, {by.in(slot, kSecond, {by.allocate(slot)})});
    CHECK(only(by.plan).kind == HazardKind::stale_read);
  }
  SECTION("a store reads it, and the update is named") {
    for (const bool out : {true, false}) {
      StateByHand by;
      const BufferId home = by.home(kFirst);
      const OpId stepped = by.adam(home, kFirst);
      const OpId ready = out ? by.out(home, kFirst, {stepped}) : stepped;
      const OpId stored = by.on_host(Work::store, kFirst, {ready});
      if (out) {
        CHECK(verify(by.plan).empty());
        continue;
      }
      const Hazard hazard = only(by.plan);
      CHECK(hazard.kind == HazardKind::stale_read);
      CHECK(hazard.first == stepped);
      CHECK(hazard.second == stored);
      CHECK(hazard.text ==
            "host-work store 1 reads the host's old exp_avg, exp_avg_sq, master of elements 0 to 9, whose newest value "
            "is of kernel adam 0 [home]");
    }
  }
  SECTION("a host Adam reads it, but not that of other elements") {
    StateByHand by;
    by.home(kFirst);
    by.on_host(Work::cpu_adam, kSecond);
    CHECK(verify(by.plan).empty());
    by.on_host(Work::cpu_adam, {9, 12});
    const std::vector<Hazard> hazards = verify(by.plan);
    REQUIRE_FALSE(hazards.empty());
    CHECK(hazards[0].kind == HazardKind::stale_read);
    CHECK(hazards[0].text.find("elements 9 to 9,") != std::string::npos);
  }
}

TEST_CASE("the device's copy is old where the host has written, and absent where nothing came in") {
  SECTION("a fetch into the host makes a home old that outlives the plan") {
    StateByHand by;
    const BufferId home = by.home(kFirst);
    const OpId fetched = by.on_host(Work::fetch, {0, 4});
    const Hazard hazard = only(by.plan);
    CHECK(hazard.kind == HazardKind::stale_read);
    CHECK(hazard.buffer == home);
    by.in(home, {0, 4}, {fetched});
    CHECK(verify(by.plan).empty());
  }
  SECTION("a checkpoint's copy replaces what is there") {
    StateByHand by;
    const BufferId home = by.home(kFirst);
    const BufferId stage = by.buffer(true);
    by.plan.buffers[stage.index].memory = Memory::pinned;
    by.plan.buffers[stage.index].role = Role::checkpoint;
    const OpId in = by.add({.kind = OpKind::copy_h2d,
                            .states = kAllState,
                            .stream = kH2d,
                            .buffer = home,
                            .host_buffer = stage,
                            .range = kFirst});
    CHECK(verify(by.plan).empty());
    by.on_host(Work::store, kFirst, {in});
    CHECK(only(by.plan).first == in);
  }
  SECTION("an update in a slot that was never filled") {
    StateByHand by;
    const BufferId slot = by.slot();
    const OpId stepped = by.adam(slot, kFirst, {by.allocate(slot)});
    by.release(slot, {by.out(slot, kFirst, {stepped})});
    const Hazard hazard = only(by.plan);
    CHECK(hazard.kind == HazardKind::stale_read);
    CHECK(hazard.first == stepped);
    CHECK(hazard.text == "kernel adam 1 finds no newest value in slot: exp_avg, exp_avg_sq, master of elements 0 to 9");
  }
  SECTION("moments come into being, masters come in") {
    StateByHand by;
    const BufferId slot = by.slot();
    const OpId room = by.allocate(slot);
    const OpId zero = by.add({.kind = OpKind::kernel,
                              .work = Work::zero_state,
                              .states = kMoments,
                              .stream = kComputeStream,
                              .buffer = slot,
                              .range = kFirst},
                             {room});
    const OpId in = by.in(slot, kFirst, {room}, kMaster);
    by.release(slot, {by.out(slot, kFirst, {by.adam(slot, kFirst, {zero, in})})});
    CHECK(verify(by.plan).empty());
  }
  SECTION("what left for a while and was not brought back before the end") {
    StateByHand by;
    const BufferId home = by.home(kFirst);
    const OpId back = by.allocate(home, {by.release(home, {by.out(home, kFirst)})});
    const Hazard hazard = only(by.plan);
    CHECK(hazard.kind == HazardKind::stale_read);
    CHECK(hazard.buffer == home);
    by.in(home, kFirst, {back});
    CHECK(verify(by.plan).empty());
  }
}

// Of a step, a copy in that moves nothing leaves an update without its state, and a copy out that moves nothing loses
// an update, or what the last step left. Between steps what is missing shows in what is read, released or left.
TEST_CASE("every copy of state that silently moves nothing is found, in every part of a life") {
  std::map<Policy, int> found;
  int harmless = 0;
  for (const test::RankCase& rank : test::life_part_cases()) {
    for (const Candidate& candidate : test::candidates_for(rank.rank)) {
      for (const Plan& plan : test::life_of_rank(rank.rank, candidate)) {
        for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
          const Op& op = plan.ops[i];
          if (!moves_state(op)) continue;
          const std::vector<Hazard> hazards = verify(with_idle(plan, i));
          INFO(rank.name << ", " << test::text_of(candidate) << ", " << name_of(plan.part) << ", " << i << ": "
                         << test::told(hazards));
          CHECK(only_about_state(hazards));
          if (hazards.empty()) {
            // Nothing reads what a skipped step has brought in and drops, and what never left is not missed.
            CHECK((is_skip(plan.part) || out_again(plan, op)));
            ++harmless;
            continue;
          }
          const bool in = op.kind == OpKind::copy_h2d;
          CHECK((in ? hazards[0].kind == HazardKind::stale_read : true));
          const bool lost = std::any_of(hazards.begin(), hazards.end(),
                                        [](const Hazard& hazard) { return hazard.kind == HazardKind::lost_state; });
          CHECK((in || lost));
          ++found[candidate.policy];
        }
      }
    }
  }
  for (const Policy policy :
       {Policy::full_reload, Policy::chunked, Policy::windowed, Policy::pipelined, Policy::tidal}) {
    INFO(name_of(policy));
    CHECK(found[policy] > 30);
  }
  CHECK(found.count(Policy::resident) == 0);  // it copies no state
  CHECK(harmless > 0);
}
