// The recommendation rule on made-up answers.
#include "planner/recommend.hpp"

#include "planner/reserve_margin.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

Answer answer(Policy policy, double step, std::int64_t reserved_gib, bool fits = true, bool deployable = true) {
  Answer a;
  a.candidate.policy = policy;
  a.step = {step};
  a.slowdown = step;
  a.device_reserved = Bytes{reserved_gib << 30};
  a.device_peak = a.device_reserved;
  a.fits_device = fits;
  a.fits_host = true;
  a.deployable = deployable;
  return a;
}

}  // namespace

TEST_CASE("resident when it fits, even beside a lower peak") {
  const std::vector<Answer> answers = {answer(Policy::chunked, 0.9, 10), answer(Policy::resident, 1.0, 40)};
  REQUIRE(recommend(answers, std::nullopt) == 1U);
}

TEST_CASE("otherwise the fastest that is deployable and fits") {
  const std::vector<Answer> answers = {answer(Policy::resident, 1.0, 90, false),
                                       answer(Policy::pipelined, 1.1, 10, true, false),
                                       answer(Policy::windowed, 1.2, 30), answer(Policy::chunked, 1.3, 20),
                                       answer(Policy::full_reload, 1.15, 80, false)};
  REQUIRE(recommend(answers, std::nullopt) == 2U);
  REQUIRE(recommend(answers, Policy::chunked) == 3U);
}

TEST_CASE("steps are compared in thousandths of the resident step, and among equals the lower peak wins") {
  std::vector<Answer> answers = {answer(Policy::windowed, 1.2001, 30), answer(Policy::chunked, 1.2009, 20)};
  REQUIRE(recommend(answers, std::nullopt) == 1U);
  answers[1].slowdown = 1.2011;
  REQUIRE(recommend(answers, std::nullopt) == 0U);
}

TEST_CASE("nothing deployable fits: no recommendation") {
  const std::vector<Answer> answers = {answer(Policy::resident, 1.0, 90, false),
                                       answer(Policy::chunked, 1.3, 50, false),
                                       answer(Policy::pipelined, 1.1, 10, true, false)};
  REQUIRE_FALSE(recommend(answers, std::nullopt).has_value());
}

// Highest live and reserved bytes of Megatron-LM runs with 1,816,758,272 parameters on one H200 (driver 580.159, torch
// 2.11, 2026-11-30), in MiB. Between steps: 10,589 without state, 6,930 more with the masters, 31,387 with all.
TEST_CASE("the reserved bound is above what torch reserved, and not far above") {
  struct Run {
    const char* name;
    Policy policy;
    DeviceUse use;
    std::int64_t reserved_mib;
  };
  const auto mib = [](std::int64_t n) { return Bytes{n << 20}; };
  const Run runs[] = {
      {"resident", Policy::resident, {mib(31387), {}, mib(40878), mib(31387)}, 41438},
      {"full-reload", Policy::full_reload, {mib(10589), mib(20791), mib(20081), mib(31781)}, 33578},
      {"chunked 4e8", Policy::chunked, {mib(10589), {}, mib(20081), mib(15140)}, 21012},
      {"chunked 1e9", Policy::chunked, {mib(10589), {}, mib(20081), mib(21948)}, 24628},
      {"windowed 512", Policy::windowed, {mib(10589), mib(6930), mib(20081), mib(18930)}, 27588},
      {"windowed 0", Policy::windowed, {mib(10589), mib(6930), mib(20081), mib(38315)}, 52806},
      {"cpu-adam", Policy::cpu_adam, {mib(10589), {}, mib(20081), mib(10589)}, 20608},
  };
  for (const Run& run : runs) {
    INFO(run.name);
    const Bytes bound = reserved_bound(run.policy, run.use);
    CHECK(bound >= mib(run.reserved_mib));
    CHECK(static_cast<double>(bound.value) < 1.15 * static_cast<double>(mib(run.reserved_mib).value));
  }
}

TEST_CASE("a schedule of Ebb's own is recommended to the job that names it, and to no other") {
  std::vector<Answer> answers = {answer(Policy::resident, 1.0, 40), answer(Policy::pipelined, 1.1, 10, true, false),
                                 answer(Policy::tidal, 1.2, 10, true, false)};
  for (const Policy own : {Policy::pipelined, Policy::tidal}) {
    REQUIRE(recommend(answers, own).has_value());
    CHECK(answers[*recommend(answers, own)].candidate.policy == own);
  }
  CHECK(recommend(answers, std::nullopt) == 0U);
  CHECK(recommend(answers, std::nullopt, Objective::memory) == 0U);  // although the others need less
  answers[2].fits_device = false;
  CHECK_FALSE(recommend(answers, Policy::tidal).has_value());
  answers[1].objection = "steps Adam only";
  CHECK_FALSE(recommend(answers, Policy::pipelined).has_value());
  // Megatron's own policies stay what they are: named or not, a Megatron has to take them.
  answers[0].deployable = false;
  CHECK_FALSE(recommend(answers, Policy::resident).has_value());
}
