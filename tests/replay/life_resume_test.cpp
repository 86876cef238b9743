// What a user may get wrong about a resume, and what must not go wrong by itself: another model, another seed, another
// scale, an earlier checkpoint, no checkpoint yet, a run that is through, a plan that saves nothing, an interrupt.
#include <csignal>

#include "replay/life_checkpoint.hpp"
#include "replay/life_files.hpp"
#include "replay/plan_files.hpp"
#include "tests/models/error_of.hpp"
#include "tests/replay/life_cases.hpp"
#include "tests/replay/life_workplace.hpp"

using namespace ebb;
using namespace ebb::test;

namespace {

namespace fs = std::filesystem;

const std::string kTrain = "train life.json --device cpu ";

void write_life(const Workplace& place, const char* name, const Job& job, int gpus) {
  std::ofstream(place.path() / name) << to_json(
      life_plans(job, {.policy = Policy::chunked, .chunk_numel = {4000}}, gpus));
}

/// Steps, final states and places of all ranks of a run.
void check_same_end(const nlohmann::json& whole, const nlohmann::json& part) {
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const nlohmann::json& steps = whole["ranks"][rank]["steps"];
    const nlohmann::json& last = part["ranks"][rank]["steps"];
    REQUIRE(last.size() <= steps.size());
    for (std::size_t i = 0; i < last.size(); ++i) CHECK(last[i] == steps[steps.size() - last.size() + i]);
    for (const char* key : {"final_state", "parameters", "place"})
      CHECK(part["ranks"][rank][key] == whole["ranks"][rank][key]);
  }
}

std::vector<std::string> names_in(const fs::path& path) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("a checkpoint of a larger or smaller model, or of another tensor parallel size, is refused") {
  const Workplace place;
  Job larger = tiny_job();
  larger.model.layers = 3;
  write_life(place, "larger.json", larger, 2);
  Job tensor = tiny_job();
  tensor.parallel.tensor = 2;
  write_life(place, "tensor.json", tensor, 2);
  REQUIRE(place.run("train larger.json --device cpu --steps 1 --checkpoint larger").code == 0);
  REQUIRE(place.run("train tensor.json --device cpu --steps 1 --checkpoint tensor").code == 0);
  REQUIRE(place.run(kTrain + "--steps 1 --checkpoint saves").code == 0);
  for (const std::string load : {"--load ", "--load-params "}) {
    place.refuses(kTrain + "--steps 2 " + load + "larger", "of a larger model");
    place.refuses(kTrain + "--steps 2 " + load + "larger", "larger/step-00000001/rank-0000");
    place.refuses(kTrain + "--steps 2 " + load + "tensor", "of tensor parallel size 2, the job of 1");
    place.refuses("train tensor.json --device cpu --steps 2 " + load + "saves", "tensor parallel size 1, the job of 2");
    place.refuses("train larger.json --device cpu --steps 2 " + load + "saves", "another model");
  }
}

TEST_CASE("each rank of a job with tensor parallelism, stages or experts needs only its part of a checkpoint") {
  for (const auto& [tensor, pipeline, expert] : {std::tuple(2, 1, 1), std::tuple(1, 2, 1), std::tuple(1, 1, 2)}) {
    const Workplace place;
    Job job = tiny_job(expert > 1 ? "tiny-moe" : "tiny");
    job.parallel.tensor = tensor;
    job.parallel.pipeline = pipeline;
    job.parallel.expert = expert;
    write_life(place, "life.json", job, 2);
    const nlohmann::json whole = place.json(kTrain + "--steps 3");
    REQUIRE(place.run(kTrain + "--steps 2 --checkpoint saves").code == 0);
    check_same_end(whole, place.json(kTrain + "--steps 3 --checkpoint saves --resume"));
  }
}

TEST_CASE("a resume goes on with the seed and the loss scaling that its run began with") {
  const Workplace place;
  const std::string begun = kTrain + "--seed 7 --initial-loss-scale 1024 --inject 1:0:nan ";
  const nlohmann::json whole = place.json(begun + "--inject 3:0:inf --steps 4");
  REQUIRE(place.run(begun + "--steps 2 --checkpoint saves").code == 0);
  // Without a word of it, with the same words, and with some of them.
  for (const std::string words : {"", "--seed 7 --initial-loss-scale 1024 ", "--loss-scale "})
    check_same_end(whole, place.json(kTrain + words + "--inject 3:0:inf --steps 4 --load saves"));
  place.refuses(kTrain + "--steps 4 --load saves --seed 8", "began with seed 7, not 8");
  place.refuses(kTrain + "--steps 4 --load saves --initial-loss-scale 2048", "began with 1024, not 2048");
  REQUIRE(place.run(kTrain + "--steps 2 --checkpoint unscaled").code == 0);
  place.refuses(kTrain + "--steps 4 --load unscaled --loss-scale", "does not scale the loss");
  // The checkpoint of a run that begins anew with parameters alone is of its own seed.
  CHECK(place.run(kTrain + "--steps 1 --load-params saves --seed 8").code == 0);
}

TEST_CASE("an executor refuses a state whose run began otherwise") {
  const TemporaryDirectory directory("origin");
  const Life life = life_of(life_job(1), {.policy = Policy::resident});
  replay::TrainingOptions training;
  training.seed = 5;
  replay::reference_life(life.ranks, {.training = training, .events = {init(), steps(1), save(directory.path())}});
  const auto resumed = [&](const replay::TrainingOptions& options) {
    return error_of([&] {
      replay::reference_life(life.ranks, {.training = options, .events = {init(), load(directory.path()), steps(1)}});
    });
  };
  CHECK(resumed(training).empty());
  replay::TrainingOptions other = training;
  other.seed = 6;
  CHECK(resumed(other).find("began with seed 5, this one with 6") != std::string::npos);
  other = training;
  other.scaling.interval = 3;
  CHECK(resumed(other).find("another rule") != std::string::npos);
}

TEST_CASE("a save that is due while every step was skipped comes after the first one that is not") {
  const Workplace place;
  const std::string skips = kTrain + "--inject 1:0:inf --inject 2:1:nan --inject 3:0:inf --loss-scale ";
  const nlohmann::json whole = place.json(skips + "--steps 7");
  const nlohmann::json saved = place.json(skips + "--steps 5 --save-every 2 --keep 0 --checkpoint saves");
  CHECK(names_in(place.path() / "saves") == std::vector<std::string>{"step-00000004", "step-00000005"});
  CHECK(saved["remarks"].dump().find("due after step 2 came after step 4") != std::string::npos);
  check_same_end(whole, place.json(skips + "--steps 7 --load saves/step-00000004"));
  check_same_end(whole, place.json(skips + "--steps 7 --resume --checkpoint saves"));
  const nlohmann::json every = place.json(skips + "--steps 5 --save-every 1 --keep 0 --checkpoint every");
  CHECK(names_in(place.path() / "every") == std::vector<std::string>{"step-00000004", "step-00000005"});
  CHECK(every["checkpoints"].size() == 2);
  // Not one good step: nothing to save, no error, and a resume begins anew, with the same numbers.
  const nlohmann::json none = place.json(skips + "--steps 3 --save-every 1 --checkpoint none --storage-reference");
  CHECK(none["checkpoints"].empty());
  CHECK(none["remarks"].dump().find("no checkpoint was saved") != std::string::npos);
  check_same_end(whole, place.json(skips + "--steps 7 --resume --checkpoint none"));
}

TEST_CASE("plans that save nothing, or never skip, are refused before training") {
  const Workplace place;
  const std::vector<Plan> plans = life_plans(tiny_job(), {.policy = Policy::chunked, .chunk_numel = {4000}}, 2);
  const auto write = [&](const char* name, const auto& leave_out) {
    std::vector<Plan> some;
    for (const Plan& plan : plans)
      if (!leave_out(plan)) some.push_back(plan);
    std::ofstream(place.path() / name) << to_json(some);
  };
  const auto without = [&](LifePart part) { return [part](const Plan& plan) { return plan.part == part; }; };
  const std::string cpu = " --device cpu --steps 2 --checkpoint saves";
  write("no-skip.json", without(LifePart::skip));
  place.refuses("train no-skip.json" + cpu, "no plan of the part skip");
  write("no-first-skip.json", without(LifePart::first_skip));
  place.refuses("train no-first-skip.json" + cpu, "no plan of the part first-skip");
  write("no-save.json", without(LifePart::save));
  place.refuses("train no-save.json" + cpu, "no plan of the part save");
  CHECK(place.run("train no-save.json --device cpu --steps 1").code == 0);  // who saves nothing needs no plan of it
  // Stores less than all: the operations of one state are gone.
  std::vector<Plan> less = plans;
  for (Plan& plan : less) {
    if (plan.part != LifePart::save) continue;
    for (Op& op : plan.ops)
      if (op.work == Work::store) op.work = Work::none;
  }
  std::ofstream(place.path() / "less.json") << to_json(less);
  place.refuses("train less.json" + cpu, "rank 0, save: exp_avg of elements [0, ");
  CHECK_FALSE(fs::exists(place.path() / "saves"));
}

TEST_CASE("every recipe's and policy's parts move all of the state") {
  for (const int gpus : {1, 2})
    for (const LifeJob& what : life_jobs(gpus))
      for (const Candidate& candidate : life_candidates(owned_by_first(what.job))) {
        const Life life = life_of(what.job, candidate);
        for (const replay::LifeRank& rank : life.ranks)
          for (const LifePart part : {LifePart::save, LifePart::load, LifePart::load_params, LifePart::reload})
            replay::require_all_moved(replay::program_of(rank, part), "life.json");
      }
}

TEST_CASE("an earlier or a new run does not save beside a later checkpoint of another one") {
  const Workplace place;
  REQUIRE(place.run(kTrain + "--steps 4 --save-every 2 --checkpoint saves").code == 0);
  place.refuses(kTrain + "--steps 6 --load saves/step-00000002 --checkpoint saves",
                "step-00000004: it is of a later step");
  place.refuses(kTrain + "--steps 6 --checkpoint saves", "--resume");
  place.refuses(kTrain + "--steps 6 --load-params saves --checkpoint saves", "begins anew");
  CHECK(names_in(place.path() / "saves") == std::vector<std::string>{"step-00000002", "step-00000004"});
  CHECK(place.run(kTrain + "--steps 6 --load saves/step-00000002 --checkpoint other").code == 0);
  CHECK(place.run(kTrain + "--steps 6 --load saves --checkpoint saves").code == 0);  // the newest itself
  fs::rename(place.path() / "saves/step-00000004", place.path() / "saves/step-00000005");
  place.refuses(kTrain + "--steps 8 --load saves/step-00000005", "it is of step 4");
}

TEST_CASE("a run that is through is nothing to do, and no error") {
  const Workplace place;
  REQUIRE(place.run(kTrain + "--steps 2 --checkpoint saves").code == 0);
  for (const std::string steps : {"2", "1"}) {
    const Outcome again = place.run(kTrain + "--steps " + steps + " --checkpoint saves --resume");
    CHECK(again.code == 0);
    CHECK(again.out.find("nothing to do") != std::string::npos);
    CHECK(place.json(kTrain + "--steps " + steps + " --checkpoint saves --resume")["first"] == 2);
  }
  place.refuses(kTrain + "--steps 2 --load saves", "raise --steps");
}

TEST_CASE("names and numbers are shown as they are") {
  const Workplace place;
  for (const std::string option : {"--checkpoint", "--load", "--load-params"})
    place.refuses(kTrain + "--steps 2 " + option + " ''", option + ": the name is empty");
  place.refuses("equivalence '" EBB_TEST_DATA "/replay/tiny.yaml' --policy resident --life --checkpoint ''",
                "--checkpoint: the name is empty");
  REQUIRE(place.run(kTrain + "--steps 1 --loss-scale --checkpoint saves").out.find("4294967296 ") != std::string::npos);
  CHECK(place.run("checkpoint saves").out.find("loss scale 4294967296\n") != std::string::npos);
}

TEST_CASE("messages about plans that lie in files of ours name what the user gave") {
  const TemporaryDirectory directory("shown");
  std::ofstream(directory.path() + "/life.json") << "[]";
  const auto refused = [&](const auto& read) { return error_of(read); };
  const std::string name = directory.path() + "/life.json";
  CHECK(refused([&] { replay::read_life_file(name, "the plans of JOB"); }).find("the plans of JOB") == 0);
  CHECK(refused([&] { replay::read_plan_file(name, "the plans of JOB"); }).find("the plans of JOB") == 0);
  CHECK(refused([&] { replay::read_life_file(name); }).find(name) == 0);
}

TEST_CASE("a place where no checkpoint can be written is found before training") {
  const Workplace place;
  std::ofstream(place.path() / "file") << "";
  for (const std::string directory : {"file", "file/below", "/proc/ebb"}) {
    const Outcome outcome = place.run(kTrain + "--steps 2 --checkpoint " + directory);
    CHECK(outcome.code == 3);
    CHECK(outcome.err.find(directory) != std::string::npos);
  }
}

TEST_CASE("a file that may not grow ends the run with an error that names it, and the old checkpoint stays") {
  const Workplace place;
  REQUIRE(place.run(kTrain + "--steps 1 --checkpoint saves").code == 0);
  const std::string command = "cd '" + place.path().string() + "' && ulimit -f 16 && '" EBB_REPLAY_BINARY "' " +
                              kTrain + "--steps 2 --checkpoint saves --resume >out 2>err";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 3);
  CHECK(text_of_file(place.path() / "err").find("step-00000002.partial/rank-0000") != std::string::npos);
  CHECK(text_of_file(place.path() / "err").find("ulimit -f") != std::string::npos);
  CHECK(names_in(place.path() / "saves") == std::vector<std::string>{"step-00000001"});
  CHECK(place.run("checkpoint saves").code == 0);
}

TEST_CASE("an interrupt ends a run with 128 and the signal, and leaves nothing but checkpoints") {
  const Workplace place;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    fs::remove_all(place.path() / "saves");
    fs::create_directories(place.path() / "tmp");
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::setenv("TMPDIR", (place.path() / "tmp").c_str(), 1);
      if (::chdir(place.path().c_str()) != 0 || ::freopen("out", "w", stdout) == nullptr ||
          ::freopen("err", "w", stderr) == nullptr)
        ::_exit(99);
      for (const int each : {SIGINT, SIGTERM, SIGHUP}) std::signal(each, SIG_DFL);
      ::execl(EBB_REPLAY_BINARY, "ebb-replay", "train", "life.json", "--device", "cpu", "--steps", "100000",
              "--checkpoint", "saves", "--save-every", "1", static_cast<char*>(nullptr));
      ::_exit(98);
    }
    while (!fs::exists(place.path() / "saves/step-00000003")) ::usleep(1000);  // saves nearly all the time
    REQUIRE(::kill(child, signal) == 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 128 + signal);
    CHECK(text_of_file(place.path() / "err").find("interrupted by SIG") != std::string::npos);
    CHECK(names_in(place.path() / "tmp").empty());
    CHECK(place.run("checkpoint saves").code == 0);
    for (const std::string& name : names_in(place.path() / "saves")) CHECK(name.size() == 13);
  }
}
