// Learning from a log closes the loop: the learned job, simulated under the logged policy, takes what the log says and
// holds what it says. Logs are of the measured runs (tests/data/logs).
#include "planner/learn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "models/errors.hpp"
#include "models/job_yaml.hpp"
#include "planner/evaluator.hpp"
#include "planner/reserved.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

TrainingLog log_of(const std::string& name) {
  std::ifstream in(std::string(EBB_TEST_DATA) + "/logs/" + name, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return read_training_log(text.str());
}

Job measured_job(Offload offload = {}) {
  Job job = load_job("measured-1.8b-1xh200");
  job.offload = offload;
  job.compute.step_seconds.reset();  // whatever it says, it is not asked
  return job;
}

/// A log of steady iterations, and one memory line.
TrainingLog made(double milliseconds, const Job& job, double allocated_mib = 0, double peak_mib = 0) {
  std::string text;
  for (int i = 1; i <= 6; ++i)
    text += fmt::format("iteration {}/6 | elapsed time per iteration (ms): {:.4f} | global batch size: {} |\n", i,
                        i == 1 ? 9 * milliseconds : milliseconds, job.batch.global);
  if (allocated_mib > 0)
    text += fmt::format(
        "[Rank 0] (after 6 iterations) memory (MB) | allocated: {:.4f} | max allocated: {:.4f} | "
        "reserved: 1 | max reserved: 1\n",
        allocated_mib, peak_mib);
  return read_training_log(text);
}

Seconds simulated(const Job& job, const Candidate& candidate) { return Evaluator(job).answer(candidate).step; }

PredictedMemory predicted(const Job& job, const Candidate& candidate) {
  const StageLayout stage = stage_layout(job, 0);
  return predicted_memory(rank_model(job, stage, 0), candidate);
}

double mib(Bytes bytes) { return static_cast<double>(bytes.value) / 1048576.0; }

}  // namespace

TEST_CASE("learn: the resident run of the measured job") {
  const Learned learned = learn(measured_job(), log_of("resident-1.8b.log"), "log");
  CHECK(learned.candidate.policy == Policy::resident);
  CHECK(learned.sample.used == 3);
  CHECK(learned.sample.median.value == Approx(0.5659).epsilon(1e-4));
  CHECK(simulated(learned.job, {}).value == Approx(0.5659).epsilon(1e-4));
  // The optimizer took 0.020 s in this run: what remains is forward and backward.
  CHECK(learned.step_seconds.value == Approx(0.5659 - 0.020).epsilon(0.02));
  REQUIRE(learned.optimizer_logged);
  CHECK(learned.optimizer_logged->value == Approx(0.0205).epsilon(0.05));
  REQUIRE(learned.memory.size() == 1);
  CHECK(learned.memory[0].iterations == 2);  // not the first report, whose maximum comes before there was any state
  CHECK(mib(learned.memory[0].peak) == Approx(40877.53));
}

TEST_CASE("learn: the chunked run of the measured job, and what it says of the resident one") {
  const Job job = measured_job({.policy = Policy::chunked, .chunk_numel = Numel{1'000'000'000}});
  const Learned learned = learn(job, log_of("chunked-1.8b.log"), "log");
  CHECK(learned.candidate.policy == Policy::chunked);
  CHECK(learned.sample.after_pause == 1);
  CHECK(simulated(learned.job, learned.candidate).value == Approx(learned.sample.median.value).epsilon(1e-4));
  CHECK(predicted(learned.job, learned.candidate).peak_allocated >= Bytes{23013503488});
  // Another run of this job, without offload, took 0.566 s an iteration.
  CHECK(simulated(learned.job, {}).value == Approx(0.566).epsilon(0.08));
}

TEST_CASE("learn: every policy's step is taken apart and put together again") {
  const std::vector<Offload> all = {{.policy = Policy::resident},
                                    {.policy = Policy::full_reload},
                                    {.policy = Policy::chunked, .chunk_numel = Numel{100'000'000}},
                                    {.policy = Policy::windowed, .chunk_size_mb = 64, .fraction = 0.5},
                                    {.policy = Policy::cpu_adam, .fraction = 0.5}};
  for (const Offload& offload : all) {
    CAPTURE(name_of(*offload.policy));
    const Job job = measured_job(offload);
    const Learned learned = learn(job, made(4321.0, job), "log");
    CHECK(simulated(learned.job, learned.candidate).value == Approx(4.321).epsilon(1e-5));
    CHECK(learned.step_seconds.value > 0);
    CHECK(learned.step_seconds.value < 4.321);
  }
}

TEST_CASE("learn: with many ranks, overlapped communication is not taken off twice") {
  const Job job = load_job("llama3-8b-hgx-h200");
  const Learned learned = learn(job, made(20'000, job), "log");
  CHECK(simulated(learned.job, {}).value == Approx(20.0).epsilon(1e-5));
}

TEST_CASE("learn: what the run held beyond Ebb's account is there between steps and at the peak") {
  const Job job = measured_job();
  const PredictedMemory plain = predicted(job, {});
  const double allocated = mib(plain.allocated) + 300;
  const double peak = mib(plain.peak_allocated) + 1000;
  const Learned learned = learn(job, made(600, job, allocated, peak), "log");
  CHECK(mib(learned.job.measured.resident_remainder) == Approx(300).epsilon(0.01));
  CHECK(mib(learned.job.measured.peak_remainder) == Approx(700).epsilon(0.01));
  const PredictedMemory after = predicted(learned.job, {});
  // torch leaves a rest of a block with the tensor in it where that is too small to split off.
  CHECK(mib(after.allocated) == Approx(allocated).margin(4));
  CHECK(mib(after.peak_allocated) == Approx(peak).margin(4));
  // The plan counts them like the replayed allocator.
  const Answer answer = Evaluator(learned.job).answer({});
  CHECK(mib(answer.device_peak) == Approx(peak).epsilon(0.01));
  CHECK(mib(answer.device_between_steps) == Approx(allocated).epsilon(0.01));
  // Other policies carry them as well: chunked's peak grows by as much.
  const Candidate chunked{.policy = Policy::chunked, .chunk_numel = Numel{100'000'000}};
  CHECK(mib(predicted(learned.job, chunked).peak_allocated) ==
        Approx(mib(predicted(job, chunked).peak_allocated) + 1000).margin(8));
}

TEST_CASE("learn: a run that held less than Ebb counts changes no figure") {
  const Job job = measured_job();
  const PredictedMemory plain = predicted(job, {});
  const Learned learned = learn(job, made(600, job, mib(plain.allocated) - 50, mib(plain.peak_allocated) - 50), "log");
  CHECK(learned.job.measured == Measured{});
  CHECK(learn(job, made(600, job), "log").assumed.size() == 2);  // resident, and no memory line
}

TEST_CASE("learn: what was learned before is not added again") {
  const Job job = measured_job();
  const PredictedMemory plain = predicted(job, {});
  const TrainingLog log = made(600, job, mib(plain.allocated) + 300, mib(plain.peak_allocated) + 1000);
  const Learned once = learn(job, log, "log");
  CHECK(learn(once.job, log, "log").job.measured == once.job.measured);
  CHECK(learn(once.job, log, "log").step_seconds.value == Approx(once.step_seconds.value).epsilon(1e-5));
}

TEST_CASE("learn: the policy is what the run printed of its arguments") {
  const auto printed = [](const std::string& arguments) {
    std::string text;
    for (std::size_t at = 0; at < arguments.size();) {
      const std::size_t end = std::min(arguments.find(',', at), arguments.size());
      const std::string line = arguments.substr(at, end - at);
      const std::size_t blank = line.find(' ');
      text += fmt::format("  {} ............ {}\n", line.substr(0, blank), line.substr(blank + 1));
      at = end + 1;
    }
    return printed_policy(read_training_log(text), "log");
  };
  CHECK_FALSE(printed("seq_length 2048,optimizer_offload_fraction 1.0"));
  CHECK_FALSE(printed("offload_optimizer_states maybe"));
  CHECK(printed("optimizer_cpu_offload False,optimizer_offload_fraction 1.0") == Candidate{});
  // Pull request 6544.
  CHECK(printed("offload_optimizer_states True,offload_optimizer_states_chunk_numel 0") ==
        Candidate{.policy = Policy::full_reload});
  CHECK(
      printed("offload_optimizer_states True,offload_optimizer_states_chunk_numel 5000,optimizer_cpu_offload False") ==
      Candidate{.policy = Policy::chunked, .chunk_numel = Numel{5000}});
  // dev, whose old name of the switch gives one window.
  CHECK(printed("chunked_optimizer_state_offload True,optimizer_state_offload_chunk_size_mb 128,"
                "optimizer_state_offload_fraction 0.8") ==
        Candidate{.policy = Policy::windowed, .chunk_size_mb = 128, .fraction = 0.8});
  CHECK(printed("chunked_optimizer_state_offload False,offload_optimizer_states True,"
                "optimizer_state_offload_chunk_size_mb 0,optimizer_state_offload_fraction 1.0") ==
        Candidate{.policy = Policy::windowed});
  // main.
  CHECK(printed("optimizer_cpu_offload True,optimizer_offload_fraction 0.5") ==
        Candidate{.policy = Policy::cpu_adam, .fraction = 0.5});
  CHECK(printed("optimizer_cpu_offload True,optimizer_offload_fraction 0.0") == Candidate{});
  CHECK_THROWS_WITH(printed("optimizer_cpu_offload True,chunked_optimizer_state_offload True"),
                    Catch::Contains("optimizer_cpu_offload True beside chunked_optimizer_state_offload True"));
  CHECK_THROWS_WITH(printed("offload_optimizer_states True,offload_optimizer_states_chunk_numel x"),
                    Catch::Contains("log: ") && Catch::Contains("not a whole number"));
}

TEST_CASE("learn: where the job names no policy, or not all of it, the log's counts") {
  const TrainingLog log = log_of("chunked-1.8b.log");
  const Candidate ran{.policy = Policy::chunked, .chunk_numel = Numel{1'000'000'000}};
  for (const Offload& offload : {Offload{}, Offload{.policy = Policy::chunked},
                                 Offload{.policy = Policy::chunked, .chunk_numel = Numel{1'000'000'000}}}) {
    const Learned learned = learn(measured_job(offload), log, "log");
    CHECK(learned.candidate == ran);
    CHECK(learned.policy_source == PolicySource::log);
    CHECK(learned.warnings.empty());
    CHECK(learned.job.offload == offload);
  }
  CHECK(learn(measured_job(), log_of("resident-1.8b.log"), "log").policy_source == PolicySource::none);
  CHECK(learn(measured_job({.policy = Policy::resident}), log_of("resident-1.8b.log"), "log").policy_source ==
        PolicySource::job);
}

TEST_CASE("learn: a job of another policy than the log's is refused, and both are named") {
  const TrainingLog log = log_of("chunked-1.8b.log");
  for (const auto& [offload, text] :
       {std::pair{Offload{.policy = Policy::resident}, "the job has offload: {policy: resident}"},
        std::pair{Offload{.policy = Policy::chunked, .chunk_numel = Numel{100'000'000}},
                  "the job has offload: {policy: chunked, chunk_numel: 100000000}"},
        std::pair{Offload{.policy = Policy::full_reload}, "the job has offload: {policy: full-reload}"}})
    CHECK_THROWS_WITH(learn(measured_job(offload), log, "train.log"),
                      Catch::Contains("train.log: by its arguments the run had offload: {policy: chunked, "
                                      "chunk_numel: 1000000000}") &&
                          Catch::Contains(text) && Catch::Contains("leave the job's offload: out"));
}

TEST_CASE("learn: a run that held far less than its policy is warned of, one that held a little less is not") {
  TrainingLog silent = log_of("chunked-1.8b.log");
  silent.arguments.clear();
  const Learned learned = learn(measured_job(), silent, "log");
  REQUIRE(learned.warnings.size() == 1);
  // 10589.39 and 21947.39 MiB by the log.
  CHECK_THAT(learned.warnings[0], Catch::Contains("rank 0 held 10.34 GiB between steps") &&
                                      Catch::Contains("21.43 GiB at its peak") && Catch::Contains("another job") &&
                                      Catch::Contains("without resident"));
  CHECK(learn(measured_job(), log_of("resident-1.8b.log"), "log").warnings.empty());

  const Job job = measured_job();
  const PredictedMemory plain = predicted(job, {});
  const double allocated = mib(plain.allocated);
  const double peak = mib(plain.peak_allocated);
  CHECK(learn(job, made(600, job, 0.951 * allocated, 0.951 * peak), "log").warnings.empty());
  CHECK(learn(job, made(600, job, 0.949 * allocated, peak), "log").warnings.size() == 1);
  CHECK(learn(job, made(600, job, allocated, 0.949 * peak), "log").warnings.size() == 1);
  // After the first line the optimizer's state is there, but the highest moment was before.
  TrainingLog early = made(600, job, allocated, 0.8 * peak);
  early.memory[0].iterations = 1;
  CHECK(learn(job, early, "log").warnings.empty());
}

TEST_CASE("learn: logs of another job are refused") {
  Job job = measured_job();
  job.batch.sequence = 4096;
  CHECK_THROWS_WITH(learn(job, log_of("resident-1.8b.log"), "train.log"),
                    Catch::Contains("train.log: its run had seq_length 2048, the job has 4096"));
  const Job chunked = measured_job({.policy = Policy::chunked, .chunk_numel = Numel{100'000'000}});
  CHECK_THROWS_WITH(learn(chunked, made(300, chunked), "log"),
                    Catch::Contains("optimizer and communication alone take") && Catch::Contains("chunked"));
  const TrainingLog other = read_training_log(
      "iteration 1/1 | elapsed time per iteration (ms): 600 |\n[Rank 5] (after 1 iterations) memory "
      "(MB) | allocated: 1 | max allocated: 1 | reserved: 1 | max reserved: 1\n");
  CHECK_THROWS_WITH(learn(measured_job(), other, "log"), Catch::Contains("rank 5 reports memory"));
}
