// When device storage is taken: by hand on small plans, and against the planner's own Order on random plans and on the
// plans of every policy: what shares bytes in the arena is never alive at once.
#include "replay/device_lives.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "models/errors.hpp"
#include "models/op_order.hpp"
#include "replay/device_layout.hpp"
#include "replay/device_memory.hpp"
#include "tests/catch.hpp"
#include "tests/replay/overlay_check.hpp"
#include "tests/replay/plan_draft.hpp"
#include "tests/replay/replay_cases.hpp"

using namespace ebb;
using namespace ebb::replay;
using test::check_no_overlap;
using test::lives_apart;

namespace {

using Draft = test::PlanDraft;
using Lives = std::vector<DeviceLife>;

constexpr StreamId kHost = Draft::kHost;
constexpr StreamId kCompute = Draft::kCompute;
constexpr StreamId kH2d = Draft::kH2d;
constexpr StreamId kD2h = Draft::kD2h;

/// Buffers that come and go on the compute stream, some released behind a copy that may still run, among copies and
/// kernels with random dependencies.
Plan random_plan(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
  Draft draft;
  std::vector<BufferId> alive;
  std::vector<BufferId> dead;
  for (std::uint32_t b = 0; b < 12; ++b) {
    const bool initial = below(4) == 0;
    (initial ? alive : dead).push_back(draft.buffer("", 1 + below(5000), initial));
  }
  const auto deps = [&] {
    std::vector<OpId> some;
    for (std::uint32_t n = below(3); n > 0 && !draft.plan.ops.empty(); --n)
      some.push_back({below(draft.plan.ops.size())});
    return some;
  };
  const auto take = [&](std::vector<BufferId>& from) {
    const std::size_t i = below(from.size());
    const BufferId taken = from[i];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
    return taken;
  };
  for (int i = 0; i < 120; ++i) {
    const std::uint32_t what = below(10);
    if (what < 2 && !dead.empty()) {
      alive.push_back(take(dead));
      draft.op(OpKind::allocate, kCompute, alive.back(), deps());
    } else if (what < 5 && !alive.empty()) {
      dead.push_back(take(alive));
      const bool lags = below(2) == 0 && !draft.plan.ops.empty();
      const OpId after = lags ? OpId{below(draft.plan.ops.size())} : OpId::none();
      draft.op(OpKind::release, kCompute, dead.back(), deps(), after);
    } else if (what < 6) {
      draft.op(OpKind::kernel, kCompute, {}, deps());
    } else {
      draft.op(what < 8 ? OpKind::copy_h2d : OpKind::copy_d2h, what < 8 ? kH2d : kD2h, {}, deps());
    }
  }
  return draft.plan;
}

}  // namespace

TEST_CASE("device lives: a release behind a copy holds the storage until the compute stream has waited for it") {
  Draft draft;
  const BufferId state = draft.buffer("", 1000, true);
  const BufferId early = draft.buffer("", 1000);
  const BufferId late = draft.buffer("", 1000);
  const OpId out = draft.op(OpKind::copy_d2h, kD2h);
  draft.release(state, out);                           // position 0
  draft.allocate(early);                               // 1: the copy may still run
  draft.release(early);                                // 2
  const OpId next = draft.op(OpKind::copy_d2h, kD2h);  // behind `out`
  const OpId wait = draft.op(OpKind::host_wait, kHost, {}, {next});
  draft.op(OpKind::kernel, kCompute, {}, {wait});  // 3
  draft.allocate(late);                            // 4
  CHECK(next_on_compute(draft.plan)[out.index] == 3);
  const auto lives = device_lives(draft.plan);
  CHECK(lives[state.index] == Lives{{0, 2}});
  CHECK(lives[early.index] == Lives{{1, 2}});
  CHECK(lives[late.index] == Lives{{4, 4}});
  CHECK(check_no_overlap(draft.plan) == 1);
  CHECK(place_buffers(draft.plan).size == Bytes{2048});
}

TEST_CASE("device lives: what leaves and comes back has two, host buffers none, strays are refused") {
  Draft draft;
  const BufferId cyclic = draft.buffer("", 1000, true);
  const BufferId constant = draft.buffer("", 300, true);
  const BufferId pinned = draft.buffer("", 1000, true);
  const BufferId between = draft.buffer("", 1000);
  draft.plan.buffers[pinned.index].memory = Memory::pinned;
  draft.release(cyclic);               // 0
  draft.allocate(between);             // 1
  draft.op(OpKind::kernel, kCompute);  // 2
  draft.release(between);              // 3
  draft.allocate(cyclic);              // 4
  draft.op(OpKind::kernel, kCompute);  // 5
  const auto lives = device_lives(draft.plan);
  CHECK(lives[cyclic.index] == Lives{{0, 0}, {4, 5}});
  CHECK(lives[constant.index] == Lives{{0, 5}});
  CHECK(lives[between.index] == Lives{{1, 3}});
  CHECK(lives[pinned.index].empty());
  const memory::Arena arena = place_buffers(draft.plan);
  CHECK(arena.offsets[between.index] == arena.offsets[cyclic.index]);
  CHECK(arena.size == Bytes{1024 + 512});
  draft.op(OpKind::release, kD2h, cyclic);
  CHECK_THROWS_AS(device_lives(draft.plan), InputError);
  CHECK(device_lives(Plan{}).empty());
}

TEST_CASE("device lives: a buffer must not come back to bytes that a copy may still read") {
  const auto plan = [](bool waits) {
    Draft draft;
    const BufferId state = draft.buffer("tail 0", 1000, true, true);
    const OpId out = draft.op(OpKind::copy_d2h, kD2h, state);
    draft.release(state, out);
    draft.op(OpKind::allocate, kCompute, state, waits ? std::vector{out} : std::vector<OpId>{});
    return draft.plan;
  };
  CHECK(device_lives(plan(true))[0] == Lives{{0, 0}, {1, 1}});
  CHECK(place_buffers(plan(true)).size == Bytes{1024});
  CHECK_THROWS_WITH(place_buffers(plan(false)), Catch::Contains("\"tail 0\" is allocated again while an op may still"));
}

TEST_CASE("device lives: on random plans nothing that may be alive at once shares bytes, or the plan is refused") {
  int shared = 0;
  int refused = 0;
  for (unsigned seed = 1; seed <= 600; ++seed) {
    CAPTURE(seed);
    const Plan plan = random_plan(seed);
    if (lives_apart(plan, Order(plan))) {
      shared += check_no_overlap(plan);
    } else {
      ++refused;
      CHECK_THROWS_AS(place_buffers(plan), InputError);
    }
  }
  CHECK(shared > 1000);
  CHECK(refused > 100);
}

TEST_CASE("device lives: e(i) is the first op of the compute stream that the planner's order puts behind i") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    const Plan plan = random_plan(seed);
    const Order order(plan);
    const std::vector<std::int64_t> next = next_on_compute(plan);
    for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
      auto expected = static_cast<std::int64_t>(plan.ops.size());
      std::int64_t position = 0;
      for (std::uint32_t j = 0; j < plan.ops.size(); ++j) {
        if (plan.ops[j].stream != kCompute) continue;
        if (order.before({i}, {j})) {
          expected = position;
          break;
        }
        ++position;
      }
      REQUIRE(next[i] == expected);
    }
  }
}

TEST_CASE("device lives: no plan of any policy overlays what may be alive at once, and slots cost their size") {
  for (const test::ReplayJob& what : test::replay_jobs()) {
    const Plan resident = host_plans(what.job, {.policy = Policy::resident}).plans.front();
    for (const Candidate& candidate : test::replay_candidates(test::owned_of(resident))) {
      INFO(what.name << ", " << test::text_of(candidate));
      const Plan plan = host_plans(what.job, candidate).plans.front();
      const bool packed = candidate.policy == Policy::pipelined || candidate.policy == Policy::tidal;
      if (lives_apart(plan, Order(plan))) {
        check_no_overlap(plan);
      } else {  // windowed's masters come back before all of them have left: a caching allocator finds other bytes
        CHECK_FALSE(packed);
        CHECK_THROWS_AS(place_buffers(plan), InputError);
      }
      const Plan* const alone[] = {&plan};
      CHECK((backing_of(alone) == DeviceBacking::arena) == packed);
      if (!packed) continue;
      const memory::Arena arena = place_buffers(plan);
      CHECK(arena.size == arena.max_live);  // nothing lost between slots
    }
  }
}
