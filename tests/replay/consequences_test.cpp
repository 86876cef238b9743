// The training loop has consequences: the loss falls, and a single wrong bit of state changes everything after it.
#include <set>

#include "replay/reference_run.hpp"
#include "tests/catch.hpp"
#include "tests/replay/replay_cases.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

TEST_CASE("The loss falls over 30 steps, with one target and with another in every step") {
  const std::vector<Plan> plans =
      host_plans(tiny_job(), {.policy = Policy::pipelined, .chunk_numel = {4001}, .slots = 3}).plans;
  const std::vector<Program> programs = compile_all(plans);
  for (const bool digests : {false, true}) {
    TrainingOptions training;
    training.digests = digests;
    training.adam.learning_rate = 0.01F;
    const RankNumbers numbers = reference(programs, {.training = training, .steps = 30}).front();
    const auto mean = [&](std::size_t from) {
      double sum = 0;
      for (std::size_t t = from; t < from + 5; ++t) sum += numbers.steps[t].loss;
      return sum / 5;
    };
    INFO("digests " << digests << ": " << mean(0) << " to " << mean(25));
    CHECK(mean(25) < 0.95 * mean(0));
    std::set<std::uint64_t> seen;
    for (const StepNumbers& step : numbers.steps) seen.insert(step.digest);
    CHECK(seen.size() == (digests ? 30 : 1));
  }
}

TEST_CASE("One flipped bit of any state changes the digest of its step and all numbers from the next step on") {
  for (const Candidate& candidate :
       {Candidate{.policy = Policy::resident}, Candidate{.policy = Policy::chunked, .chunk_numel = {9000}},
        Candidate{.policy = Policy::cpu_adam, .fraction = 0.5},
        Candidate{.policy = Policy::pipelined, .chunk_numel = {5001}, .slots = 2}}) {
    Job job = tiny_job();
    job.parallel.gpus = 2;
    const std::vector<Plan> plans = host_plans(job, candidate).plans;
    const std::vector<Program> programs = compile_all(plans);
    constexpr int kSteps = 4;
    const std::vector<RankNumbers> good = reference(programs, {.steps = kSteps});
    std::set<StateBits> flipped;
    for (std::size_t i = 0; i < programs[0].before.size(); i += 1 + programs[0].before.size() / 12) {
      const StatePlace& place = programs[0].before[i];
      const std::int64_t size = place.state == kMaster ? 4 : bytes_per_element(plans[0].precision, place.state);
      const std::int64_t last = place.elements.numel().value * size - 1;
      ReferenceRun run(programs, {}, std::nullopt);
      run.step();
      // The lowest bit of a moment may be lost in rounding before Adam writes it; the highest of its last byte is not.
      run.rank(0).state(place)[last] ^= std::byte{0x40};
      for (int t = 1; t < kSteps; ++t) run.step();
      const RankNumbers bad = run.rank(0).finish();
      INFO(text_of(candidate) << ", place " << i);
      CHECK(bad.steps[0] == good[0].steps[0]);
      CHECK(bad.steps[1].digest != good[0].steps[1].digest);
      for (std::size_t t = 2; t < kSteps; ++t) {
        CHECK(bad.steps[t].loss != good[0].steps[t].loss);
        CHECK(bad.steps[t].sum_of_squares != good[0].steps[t].sum_of_squares);
        CHECK(bad.steps[t].digest != good[0].steps[t].digest);
      }
      CHECK(bad.final_state != good[0].final_state);
      flipped.insert(place.state);
    }
    CHECK(flipped.size() == 3);
  }
}
