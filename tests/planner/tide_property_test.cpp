// The tidal placement against everything that could have been done: exhaustive search on tiny instances, the fluid
// bound on large ones. Schedules are executed by tide_executor, which shares nothing with the solver.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "planner/tide_schedule.hpp"
#include "tests/catch.hpp"
#include "tide_executor.hpp"
#include "tide_exhaustive.hpp"

using namespace ebb;

namespace {

constexpr double kUnit = 1e-6;       // seconds in a unit of time
constexpr std::int64_t kWork = 960;  // bytes in a unit of work

int among(std::mt19937& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

/// Rooms for `units` of time, in pieces: steps from 0 (or a little more) up to `most`.
std::vector<int> random_fall(std::mt19937& random, int units, int most) {
  std::vector<int> rooms(static_cast<std::size_t>(units));
  for (int& room : rooms) room = among(random, 0, most);
  if (!rooms.empty() && among(random, 0, 2) > 0) rooms.front() = 0;
  std::sort(rooms.begin(), rooms.end());
  return rooms;
}

TinyTide random_tiny(std::mt19937& random) {
  TinyTide t;
  t.pieces = among(random, 1, 6);
  t.work = among(random, 1, 3);
  t.both = among(random, 1, 2);
  if (among(random, 0, 3) == 0) {
    t.h2d = t.d2h = 2;
    t.work = among(random, 1, 2) * 2;
    t.both = among(random, 2, 4);
  }
  t.latency = among(random, 0, 3) == 0 ? 1 : 0;
  t.update = among(random, 0, 1);
  t.step_room = among(random, 1, 6);
  t.fall = random_fall(random, among(random, 0, 12), 6);
  t.rise = random_fall(random, among(random, 0, 8), 6);
  std::reverse(t.rise.begin(), t.rise.end());
  return t;
}

TideProblem problem_of(const TinyTide& t) {
  TideProblem p;
  p.piece = {t.work * kWork};
  p.pieces = t.pieces;
  const auto per_second = [](int per_unit) { return BytesPerSecond{per_unit * static_cast<double>(kWork) / kUnit}; };
  p.h2d = per_second(t.h2d);
  p.d2h = per_second(t.d2h);
  p.both = per_second(t.both);
  p.latency = {t.latency * kUnit};
  p.adam_state = t.update == 0 ? BytesPerSecond{1e24} : per_second(t.work);
  p.step_room = p.piece * t.step_room;
  const auto curve = [&](const std::vector<int>& rooms, std::vector<TideRoom>& into) {
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      into.push_back({to_ticks({static_cast<double>(i + 1) * kUnit}), p.piece * rooms[i]});
    }
  };
  curve(t.rise, p.rise);
  curve(t.fall, p.fall);
  return p;
}

std::string describe(const TinyTide& t) {
  std::string text = "pieces " + std::to_string(t.pieces) + " work " + std::to_string(t.work) + " h2d " +
                     std::to_string(t.h2d) + " d2h " + std::to_string(t.d2h) + " both " + std::to_string(t.both) +
                     " latency " + std::to_string(t.latency) + " update " + std::to_string(t.update) + " step room " +
                     std::to_string(t.step_room) + " rise";
  for (const int room : t.rise) text += " " + std::to_string(room);
  text += " fall";
  for (const int room : t.fall) text += " " + std::to_string(room);
  return text;
}

std::string describe(const TideSchedule& s) {
  std::string text = "places " + std::to_string(s.places) + " kept " + std::to_string(s.kept) + " arrive " +
                     std::to_string(s.arrive) + " tail " + std::to_string(s.tail) + " ring";
  for (const std::int64_t place : s.ring) text += " " + std::to_string(place);
  return text;
}

}  // namespace

TEST_CASE("on tiny instances the tidal schedule is within a piece of the best there is, and no bound is above it") {
  std::mt19937 random(20261201);
  for (int i = 0; i < 200000; ++i) {
    const TinyTide tiny = random_tiny(random);
    const TideProblem problem = problem_of(tiny);
    const TideSchedule schedule = solve_tide(problem);
    const TideRun run = execute_tide(problem, schedule);
    const double best = least_exposed(tiny);
    const double piece = static_cast<double>(tiny.work) / std::min(tiny.h2d, tiny.d2h);
    // The best schedule may use one direction while the other one's copy has its latency; even shares may not.
    const double latencies = tiny.latency * (2.0 * tiny.pieces - 2.0 * static_cast<double>(schedule.kept));
    INFO(i << ": " << describe(tiny) << "; " << describe(schedule) << "; best " << best << " run "
           << (run.step + run.wait) / kUnit << " bound " << fluid_bound(problem).step.value / kUnit);
    REQUIRE(run.problem.empty());
    CHECK(run.step == Approx(schedule.step.value).margin(1e-3 * kUnit));
    CHECK(run.wait == Approx(schedule.wait.value).margin(1e-3 * kUnit));
    CHECK(fluid_bound(problem).step.value / kUnit <= best + 1e-2);
    CHECK((run.step + run.wait) / kUnit <= best + piece + latencies + 1e-2);
  }
}
