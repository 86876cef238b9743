// The tidal placement against everything that could have been done: exhaustive search on tiny instances, the fluid
// bound on large ones. Schedules are executed by tide_executor, which shares nothing with the solver.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "planner/tide_schedule.hpp"
#include "tests/catch.hpp"
#include "tests/planner/tide_executor.hpp"
#include "tests/planner/tide_exhaustive.hpp"

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

double real(std::mt19937& random, double least, double most) {
  return std::uniform_real_distribution<double>(least, most)(random);
}

/// A curve of room from `least` to `most` in random steps over about `pieces` copies' time, rising.
std::vector<TideRoom> random_curve(std::mt19937& random, const TideProblem& p, double pieces, Bytes least, Bytes most) {
  const int entries = among(random, 1, 12);
  std::vector<double> fractions(static_cast<std::size_t>(entries));
  std::vector<double> ends(static_cast<std::size_t>(entries));
  for (int i = 0; i < entries; ++i) {
    fractions[static_cast<std::size_t>(i)] = real(random, 0, 1);
    ends[static_cast<std::size_t>(i)] = real(random, 0, pieces);
  }
  std::sort(fractions.begin(), fractions.end());
  std::sort(ends.begin(), ends.end());
  fractions.front() = 0;
  std::vector<TideRoom> curve;
  for (std::size_t i = 0; i < fractions.size(); ++i) {
    const double room = fractions[i] * static_cast<double>((most - least).value);
    curve.push_back({to_ticks({ends[i] * (p.piece / p.h2d).value}), least + Bytes{static_cast<std::int64_t>(room)}});
  }
  return curve;
}

TideProblem random_large(std::mt19937& random) {
  TideProblem p;
  p.piece = {among(random, 1'000'000, 400'000'000)};
  p.pieces = among(random, 20, 200);
  p.h2d = {real(random, 20e9, 100e9)};
  p.d2h = {real(random, 0.6, 1.4) * p.h2d.value};
  p.both = {real(random, std::max(p.h2d.value, p.d2h.value), p.h2d.value + p.d2h.value)};
  p.adam_state = {real(random, 5, 40) * p.h2d.value};
  p.latency = {real(random, 0, 0.01) * (p.piece / p.h2d).value};
  const auto pieces = static_cast<double>(p.pieces);
  p.step_room = {static_cast<std::int64_t>(static_cast<double>(p.piece.value) * real(random, 6, 1.3 * pieces))};
  const Bytes peak = among(random, 0, 1) == 0 ? Bytes{0} : Bytes{among(random, 0, 10) * (p.step_room.value / 12)};
  p.rise = random_curve(random, p, pieces * real(random, 0, 1.5), peak, p.step_room);
  std::reverse(p.rise.begin(), p.rise.end());
  for (std::size_t i = 0, j = p.rise.size() - 1; i < j; ++i, --j) std::swap(p.rise[i].until, p.rise[j].until);
  p.fall = random_curve(random, p, pieces * real(random, 0, 2), peak, p.step_room);
  p.may_stay = among(random, 0, 5) != 0;
  return p;
}

/// The least time to move `in` and `out` bytes when two directions that both move take even shares of `both`: both move
/// until the one that needs less is done, then the other one goes on alone.
double even_shares(const TideProblem& p, double in, double out) {
  const double h = p.h2d.value;
  const double d = p.d2h.value;
  const double in_shared = std::min(h, std::max(p.both.value / 2, p.both.value - d));
  const double out_shared = std::min(d, std::max(p.both.value / 2, p.both.value - h));
  const double together = std::min(in / in_shared, out / out_shared);
  return together + (in - together * in_shared) / h + (out - together * out_shared) / d;
}

}  // namespace

TEST_CASE("on tiny instances the tidal schedule is within a piece of the best there is, and no bound is above it") {
  std::mt19937 random(20261201);
  for (int i = 0; i < 20000; ++i) {
    const TinyTide tiny = random_tiny(random);
    const TideProblem problem = problem_of(tiny);
    const TideSchedule schedule = solve_tide(problem);
    const TideRun run = execute_tide(problem, schedule);
    const double best = least_exposed(tiny);
    // A piece's time: its copy and its update.
    const double piece = static_cast<double>(tiny.work) / std::min(tiny.h2d, tiny.d2h) + tiny.update;
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

TEST_CASE("on large instances the executed tidal schedule is within 5 % and a few pieces of the fluid bound") {
  std::mt19937 random(20261202);
  int against_fluid = 0;
  for (int i = 0; i < 2000; ++i) {
    const TideProblem problem = random_large(random);
    const TideBound bound = fluid_bound(problem);
    const TideSchedule schedule = solve_tide(problem);
    const TideRun run = execute_tide(problem, schedule);
    const double moving = static_cast<double>((problem.piece * problem.pieces - bound.kept).value);
    const double in = moving - static_cast<double>(bound.in.value);
    const double out = moving - static_cast<double>(bound.out.value);
    // Where both directions do not get what the fluid optimum gives them, no order of copies helps.
    const double least = std::max(bound.step.value, even_shares(problem, in, out));
    if (least <= bound.step.value * 1.001) ++against_fluid;
    const double piece = (problem.piece / std::min(problem.h2d, problem.d2h)).value;
    INFO(i << ": pieces " << problem.pieces << " step room "
           << static_cast<double>(problem.step_room.value) / static_cast<double>(problem.piece.value) << " fluid kept "
           << bound.kept.value / problem.piece.value << " in " << bound.in.value / problem.piece.value << " out "
           << bound.out.value / problem.piece.value << " both/h2d " << problem.both.value / problem.h2d.value
           << " d2h/h2d " << problem.d2h.value / problem.h2d.value << "; " << describe(schedule)
           << "; in pieces: fluid " << bound.step.value / piece << " shared " << least / piece << " run "
           << run.step / piece << " + " << run.wait / piece);
    REQUIRE(run.problem.empty());
    CHECK(bound.shared.value == Approx(least));
    CHECK(run.step == Approx(schedule.step.value).margin(1e-7));
    CHECK(run.wait == Approx(schedule.wait.value).margin(1e-7));
    CHECK(run.step + run.wait >= bound.step.value * (1 - 1e-9));
    CHECK(run.step + run.wait <= least * 1.05 + 3 * piece);
  }
  CHECK(against_fluid > 500);
}
