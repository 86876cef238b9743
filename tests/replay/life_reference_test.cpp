// Lives on the reference: whatever the policy, a run that skips a step, saves, dies and resumes gives the bits of an
// uninterrupted resident one, in program order and with each stream held back.
#include <fstream>

#include "models/errors.hpp"
#include "tests/catch.hpp"
#include "tests/replay/life_checks.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("Skipped, saved, killed and resumed: the bits of an uninterrupted resident run, whatever the policy") {
  for (const int gpus : {1, 2})
    for (const LifeJob& what : life_jobs(gpus)) check_interrupted(what, gpus);
}

TEST_CASE("Resumed on another number of ranks: what was saved, and from there on the bits of resident") {
  for (const auto& [from, to] : {std::pair(1, 2), std::pair(2, 1)}) {
    const std::vector<LifeJob> before = life_jobs(from);
    const std::vector<LifeJob> after = life_jobs(to);
    for (std::size_t j = 0; j < before.size(); ++j) {
      const TemporaryDirectory directory("reshard");
      const Candidate chunked{.policy = Policy::chunked, .chunk_numel = {owned_by_first(before[j].job) / 5}};
      live(life_of(before[j].job, chunked), before[j].training, {init(), steps(3), save(directory.path())});
      const auto saved = contents(directory.path());
      const auto whole = live(life_of(after[j].job, {.policy = Policy::resident}), after[j].training,
                              {init(), load(directory.path()), steps(4)});
      CHECK(whole[0].place.steps == 7);
      for (const Candidate& candidate : life_candidates(owned_by_first(after[j].job))) {
        INFO(from << " to " << to << " ranks, " << before[j].name << ", " << text_of(candidate));
        const TemporaryDirectory again("again");
        const auto numbers = live(life_of(after[j].job, candidate), after[j].training,
                                  {init(), load(directory.path()), save(again.path()), steps(4)});
        check_sound(numbers);
        CHECK(contents(again.path()) == saved);
        check_tail(whole, numbers);
      }
    }
  }
}

TEST_CASE("A life gives the same bits with each stream held back") {
  for (const int gpus : {1, 2}) {
    const Job job = life_job(gpus);
    TrainingOptions training;
    training.injections = {{.step = 1, .rank = 0, .value = kNan}, {.step = 4, .rank = gpus - 1, .value = kInfinity}};
    const auto events = [](const std::string& directory) {
      return std::vector<LifeEvent>{
          init(), steps(3), save(directory), steps(2), load(directory + "/step-00000003"), steps(2), save(directory)};
    };
    const TemporaryDirectory kept("orders-base");
    const auto whole = live(life_of(job, {.policy = Policy::resident}), training, events(kept.path()));
    for (const Candidate& candidate : life_candidates(owned_by_first(job))) {
      const Life life = life_of(job, candidate);
      for (const ReferenceOptions& order : all_orders(life.ranks.size(), {}, 0)) {
        INFO(gpus << " ranks, " << text_of(candidate) << ", "
                  << (order.held_back ? name_of(*order.held_back) : "program order") << ", most on " << order.most_on);
        const TemporaryDirectory directory("orders");
        const auto numbers = live(life, training, events(directory.path()), order);
        check_sound(numbers);
        check_tail(whole, numbers);
        CHECK(contents(directory.path()) == contents(kept.path()));
      }
    }
  }
}

TEST_CASE("A skipped step changes no bit of state, in the first step too, and ends with the same buffers alive") {
  for (const int gpus : {1, 2}) {
    for (const LifeJob& what : life_jobs(gpus)) {
      for (const Candidate& candidate : life_candidates(owned_by_first(what.job))) {
        INFO(gpus << " ranks, " << what.name << ", " << text_of(candidate));
        TrainingOptions training = what.training;
        training.injections = {{.step = 1, .rank = 0, .value = kInfinity},
                               {.step = 4, .rank = gpus - 1, .value = kNan}};
        const Life life = life_of(what.job, candidate);
        ReferenceLife run(life.ranks, {.training = training, .events = {}}, std::nullopt, 0);
        run.on(init());
        const auto fresh = run.finish();
        run.on(steps(1));
        const auto skipped_first = run.finish();
        run.on(steps(2));
        const auto before = run.finish();
        run.on(steps(1));
        const auto skipped = run.finish();
        check_sound(skipped);
        for (std::size_t r = 0; r < fresh.size(); ++r) {
          CHECK(skipped_first[r].steps.back().skipped);
          CHECK(skipped[r].steps.back().skipped);
          CHECK(skipped[r].steps.back().digest == 0);
          CHECK(skipped_first[r].final_state == fresh[r].final_state);
          // A step's parameters are gathered in the forward of the next one, where gathers run ahead.
          CHECK(skipped[r].final_state - skipped[r].parameters == before[r].final_state - before[r].parameters);
          if (gpus == 1) CHECK(skipped[r].parameters == before[r].parameters);
          CHECK(skipped[r].final_state != fresh[r].final_state);
          CHECK(skipped[r].peaks[1].part == LifePart::first_skip);
          CHECK(skipped[r].peaks[2].part == LifePart::first_step);
          CHECK(skipped[r].peaks.back().part == LifePart::skip);
        }
        CHECK(run.place().steps == 4);
        CHECK(run.place().adam_steps == 2);
        if (training.scaling.on) CHECK(run.place().loss_scale == training.scaling.initial / 4);
      }
    }
  }
}

TEST_CASE("Loss scaling changes no bit of a run with finite gradients, whose scale moves all the while") {
  Job job = life_job(2);
  job.precision.params = Dtype::fp16;
  const Life life = life_of(job, {.policy = Policy::resident});
  TrainingOptions scaled;
  scaled.scaling = {.on = true, .initial = 1024.0F, .interval = 2, .hysteresis = 2};
  const auto plain = live(life, {}, {init(), steps(6)});
  const auto moved = live(life, scaled, {init(), steps(6)});
  CHECK(moved[0].steps[5].loss_scale == 4096.0F);
  CHECK(moved[0].place.loss_scale == 8192.0F);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(plain[0].steps[i].digest == moved[0].steps[i].digest);
    CHECK(plain[0].steps[i].loss == moved[0].steps[i].loss);
  }
  CHECK(plain[0].final_state == moved[0].final_state);
}

TEST_CASE("A checkpoint that is refused in the middle of a run leaves it as it was") {
  const Job job = life_job(2);
  for (const Candidate& candidate : life_candidates(owned_by_first(job))) {
    INFO(text_of(candidate));
    const Life life = life_of(job, candidate);
    const TemporaryDirectory directory("refused");
    const auto whole = live(life, {}, {init(), steps(2), save(directory.path()), steps(3)});
    // One byte of one tensor changes.
    std::string file;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path()))
      if (entry.path().extension() == ".safetensors") file = entry.path().string();
    REQUIRE_FALSE(file.empty());
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(-5, std::ios::end);
    const char byte = static_cast<char>(stream.get());
    stream.seekp(-5, std::ios::end);
    stream.put(static_cast<char>(byte ^ 0x10));
    stream.close();

    ReferenceLife run(life.ranks, {}, std::nullopt, 0);
    run.on(init());
    run.on(steps(2));
    CHECK_THROWS_AS(run.on(load(directory.path())), InputError);
    run.on(steps(3));
    const auto numbers = run.finish();
    check_tail(whole, numbers);
    CHECK(numbers[0].steps.size() == 5);
    // Before the first step, too.
    ReferenceLife fresh(life.ranks, {}, std::nullopt, 0);
    fresh.on(init());
    CHECK_THROWS_AS(fresh.on(load(directory.path())), InputError);
    CHECK_THROWS_AS(fresh.on(load_params(directory.path() + "/none")), InputError);
    fresh.on(steps(5));
    check_tail(whole, fresh.finish());
  }
}

TEST_CASE("A start from parameters alone makes masters from them: every policy takes the same steps") {
  for (const LifeJob& what : life_jobs(2)) {
    const TemporaryDirectory directory("params");
    live(life_of(what.job, {.policy = Policy::resident}), what.training, {init(), steps(3), save(directory.path())});
    TrainingOptions other = what.training;
    other.seed = 77;  // other initial values: they must all be gone
    const auto whole =
        live(life_of(what.job, {.policy = Policy::resident}), other, {init(), load_params(directory.path()), steps(3)});
    CHECK(whole[0].place.steps == 3);
    CHECK(whole[0].steps[0].loss !=
          live(life_of(what.job, {.policy = Policy::resident}), other, {init(), steps(1)})[0].steps[0].loss);
    for (const Candidate& candidate : life_candidates(owned_by_first(what.job))) {
      INFO(what.name << ", " << text_of(candidate));
      const auto numbers = live(life_of(what.job, candidate), other, {init(), load_params(directory.path()), steps(3)});
      check_sound(numbers);
      check_tail(whole, numbers);
    }
  }
}

TEST_CASE("Events out of their place are refused with what to do") {
  const Life life = life_of(life_job(1), {.policy = Policy::resident});
  const auto refused = [&](std::vector<LifeEvent> events, const char* words) {
    CHECK_THROWS_WITH(live(life, {}, std::move(events)), Catch::Contains(words));
  };
  refused({steps(1)}, "a life begins with init");
  refused({init(), init()}, "init comes once");
  refused({init(), save("/tmp")}, "no state to save before the first step");
  refused({init(), steps(1), load_params("/tmp")}, "parameters alone are loaded before the first step");
}
