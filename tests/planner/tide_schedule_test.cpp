// The tidal placement on instances small enough to solve by hand: every number below is worked out beside it.
#include "planner/tide_schedule.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "tests/catch.hpp"
#include "tests/planner/tide_executor.hpp"

using namespace ebb;

namespace {

/// Pieces of 1 GB; 10 GB/s each way, 20 GB/s both; an update takes a millisecond; no valley, no latency. A copy takes
/// 0.1 s.
TideProblem plain(std::int64_t pieces, std::int64_t step_room) {
  TideProblem p;
  p.piece = {1'000'000'000};
  p.pieces = pieces;
  p.step_room = p.piece * step_room;
  p.h2d = p.d2h = {10e9};
  p.both = {20e9};
  p.adam_state = {1e12};
  p.rise = {{to_ticks({1}), {0}}};
  p.fall = {{to_ticks({1}), {0}}};
  return p;
}

TideRoom until(double seconds, double pieces) {
  return {to_ticks({seconds}), {static_cast<std::int64_t>(pieces * 1e9)}};
}

TideRun executed(const TideProblem& problem, const TideSchedule& schedule) {
  TideRun run = execute_tide(problem, schedule);
  CHECK(run.problem.empty());
  CHECK(run.step == Approx(schedule.step.value).epsilon(1e-6));
  CHECK(run.wait == Approx(schedule.wait.value).margin(1e-9));
  return run;
}

}  // namespace

TEST_CASE("without a valley a tidal step is the pipelined one") {
  const TideProblem p = plain(20, 4);
  const TideBound bound = fluid_bound(p);
  CHECK(bound.kept == Bytes{0});
  CHECK(bound.in == Bytes{0});
  CHECK(bound.out == Bytes{0});
  CHECK(bound.step.value == Approx(2.0));  // 20 GB each way at 10 GB/s
  const TideSchedule s = solve_tide(p);
  CHECK(s.arrive == 0);
  CHECK(s.kept == 0);
  // The forward may wait for one tenth of a second, a copy, or the step may take as long: both are the same.
  CHECK(s.tail == 0);
  CHECK(s.places >= 3);
  // In before the first update, out after the last: one copy each, overlapped by 19; and an update.
  CHECK(executed(p, s).step == Approx(2.101));
}

TEST_CASE("what comes in before the first update is the least of link, room over time and step's room") {
  TideProblem p = plain(20, 12);
  // Room from 0.2 s on for 3, from 0.6 s on for 9: 3 until 0.6, then 4 more until 1.0.
  p.fall = {until(0.2, 0), until(0.6, 3), until(1.0, 9)};
  CHECK(fluid_bound(p).in == Bytes{7'000'000'000});
  CHECK(solve_tide(p).arrive == 7);
  p.fall.back().room = {5'000'000'000};  // room for 5 at the end
  CHECK(fluid_bound(p).in == Bytes{5'000'000'000});
  CHECK(solve_tide(p).arrive == 5);
  p.step_room = {4'000'000'000};
  CHECK(fluid_bound(p).in == Bytes{4'000'000'000});
  p.h2d = {5e9};  // half as fast: 1.5 pieces of the last 0.3 s; room for 3 all the time
  p.fall = {until(0.7, 0), until(1.0, 3)};
  CHECK(fluid_bound(p).in == Bytes{1'500'000'000});
  // The second is half there at the first update.
  const TideSchedule s = solve_tide(p);
  CHECK(s.arrive == 2);
  executed(p, s);
}

TEST_CASE("what stays leaves before the forward needs its room") {
  TideProblem p = plain(20, 12);
  // At most 8 at once; from 0.3 s on 5 are left, so 8 fit; from 0.4 s on only 2: of 6 four have left.
  p.rise = {until(0.3, 8), until(0.4, 5), until(1.0, 2), until(2.0, 0)};
  CHECK(fluid_bound(p).out == Bytes{6'000'000'000});
  const TideSchedule s = solve_tide(p);
  CHECK(s.tail == 6);
  CHECK(s.wait == Seconds{0});
  executed(p, s);
}

TEST_CASE("what fits at the peak never moves") {
  TideProblem p = plain(20, 12);
  p.rise = {until(1, 7.5)};
  p.fall = {until(1, 7.5)};
  const TideBound bound = fluid_bound(p);
  CHECK(bound.kept == Bytes{7'500'000'000});
  CHECK(bound.in == Bytes{0});
  CHECK(bound.step.value == Approx(1.25));
  const TideSchedule s = solve_tide(p);
  CHECK(s.kept == 7);
  CHECK(s.moving == 13);
  CHECK(executed(p, s).step == Approx(1.401));

  SECTION("three places remain for what moves") {
    p.step_room = Bytes{8'000'000'000};
    CHECK(solve_tide(p).kept == 5);
    CHECK(solve_tide(p).places == 3);
  }
  SECTION("all of it") {
    p.pieces = 7;
    const TideSchedule all = solve_tide(p);
    CHECK(all.kept == 7);
    CHECK(all.places == 0);
    CHECK(executed(p, all).step == Approx(0.007));  // the updates
  }
  SECTION("unless nothing may stay") {
    p.may_stay = false;
    CHECK(fluid_bound(p).kept == Bytes{0});
    CHECK(fluid_bound(p).out == Bytes{0});
    CHECK(solve_tide(p).kept == 0);
    CHECK(solve_tide(p).tail == 0);
  }
}

TEST_CASE("a valley that holds the whole state leaves only the updates") {
  TideProblem p = plain(8, 8);
  p.rise = {until(0.8, 8), until(1, 0)};
  p.fall = {until(0.1, 0), until(1, 8)};
  const TideSchedule s = solve_tide(p);
  CHECK(s.arrive == 8);
  CHECK(s.tail == 8);
  CHECK(s.places == 8);
  CHECK(executed(p, s).step == Approx(0.008));
  CHECK(fluid_bound(p).step.value == Approx(0.008));
}

TEST_CASE("a piece may arrive before the first update and stay after the last") {
  // 10 pieces, 8 arrive, 8 stay: two leave and two come in, while the six between them never move in the step.
  TideProblem p = plain(10, 8);
  p.rise = {until(0.8, 8), until(1, 0)};
  p.fall = {until(0.1, 0), until(1, 8)};
  const TideSchedule s = solve_tide(p);
  CHECK(s.arrive == 8);
  CHECK(s.tail == 8);
  CHECK(fluid_bound(p).step.value == Approx(0.2));
  // The first has to leave before the ninth comes in: one copy more, and an update at either end.
  CHECK(executed(p, s).step == Approx(0.302));
  // Arrivals fill places 0 .. 7, the last eight pieces stay there, and places are taken over as they are freed.
  CHECK(s.place(8) == s.place(0));
  CHECK(s.place(9) == s.place(1));
  std::set<std::int64_t> stay;
  for (std::int64_t k = 2; k < 10; ++k) stay.insert(s.place(k));
  CHECK(stay == std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("the smallest problems") {
  SECTION("one piece, one place") {
    const TideProblem p = plain(1, 1);
    const TideSchedule s = solve_tide(p);
    CHECK(s.places == 1);
    CHECK(s.ring == std::vector<std::int64_t>{0});
    CHECK(executed(p, s).step == Approx(0.201));  // in, updated, out
  }
  SECTION("one place for three pieces: everything one after another") {
    const TideProblem p = plain(3, 1);
    const TideSchedule s = solve_tide(p);
    CHECK(s.places == 1);
    CHECK(executed(p, s).step == Approx(0.603));
  }
  SECTION("one piece that fits the valley") {
    TideProblem p = plain(1, 1);
    p.rise = {until(0.5, 1), until(1, 0)};
    p.fall = {until(0.5, 0), until(1, 1)};
    const TideSchedule s = solve_tide(p);
    CHECK(s.arrive == 1);
    CHECK(s.tail == 1);
    CHECK(executed(p, s).step == Approx(0.001));
  }
  SECTION("no forward and no backward: there is no peak, and what fits stays") {
    TideProblem p = plain(2, 2);
    p.rise.clear();
    p.fall.clear();
    const TideSchedule s = solve_tide(p);
    CHECK(s.kept == 2);
    CHECK(executed(p, s).step == Approx(0.002));
  }
}

TEST_CASE("the bound is the slowest of either direction, both together and the update") {
  TideProblem p = plain(20, 12);
  p.fall = {until(0.4, 0), until(1, 12)};           // 6 come in: 14 are left to come, 20 to go
  CHECK(fluid_bound(p).step.value == Approx(2.0));  // 20 at 10 GB/s
  p.both = {15e9};
  CHECK(fluid_bound(p).step.value == Approx(34.0 / 15));
  p.both = {20e9};
  p.h2d = {4e9};  // 2.4 come in
  CHECK(fluid_bound(p).step.value == Approx(17.6 / 4));
  p.adam_state = {2e9};
  CHECK(fluid_bound(p).step.value == Approx(10.0));
}

TEST_CASE("kept pieces are updated evenly among those that move") {
  const TideSchedule s{.places = 3, .kept = 5, .moving = 6, .arrive = 2, .tail = 0, .ring = {0, 1, 2}};
  std::vector<std::int64_t> before;
  for (std::int64_t k = 0; k < s.moving; ++k) before.push_back(s.kept_before(k));
  CHECK(before == std::vector<std::int64_t>{0, 1, 2, 2, 3, 4});  // 5/7 each, rounded down
}
