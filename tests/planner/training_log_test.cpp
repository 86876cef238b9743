// What is understood of a training log, and which of its lines show the steady step. Lines as Megatron-LM prints them
// (planner/training_log.hpp names the sources); expected figures are those written into them.
#include "planner/training_log.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "models/errors.hpp"
#include "planner/learn.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

std::string line(int number, double milliseconds, const std::string& more = "") {
  return fmt::format(
      " [2026-01-01 00:00:00] iteration {:8d}/    1000 | consumed samples: {:12d} | elapsed time per iteration (ms): "
      "{:.1f} | learning rate: 1.0E-05 | global batch size:    64 | lm loss: 1.0E+00 | loss scale: 1.0 |{}\n",
      number, number * 64, milliseconds, more);
}

std::string contents(const std::string& name) {
  std::ifstream in(std::string(EBB_TEST_DATA) + "/logs/" + name, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string steady(int from, int to, double milliseconds) {
  std::string text;
  for (int i = from; i <= to; ++i) text += line(i, milliseconds);
  return text;
}

}  // namespace

TEST_CASE("training log: an iteration line with date, throughput and what was skipped") {
  const TrainingLog log = read_training_log(
      " [2025-03-31 05:54:07.123456] iteration       50/  242204 | consumed samples:        50400 | elapsed time per "
      "iteration (ms): 1552.8 | throughput per GPU (TFLOP/s/GPU): 134.0 | learning rate: 8.000000E-06 | global batch "
      "size:  1008 | lm loss: 6.258318E+00 | loss scale: 1.0 | grad norm: 1.520 | number of skipped iterations:   2 | "
      "number of nan iterations:   1 |\n");
  REQUIRE(log.iterations.size() == 1);
  const LoggedIterations& read = log.iterations[0];
  CHECK(read.last == 50);
  CHECK(read.each.value == Approx(1.5528));
  CHECK(read.global_batch == 1008);
  CHECK(read.skipped == 2);
  CHECK(read.nan == 1);
  CHECK(read.first_of_run);
  CHECK(read.line == 1);
}

TEST_CASE("training log: prefixes, colours, carriage returns and messages that share a line") {
  const std::string figures = "elapsed time per iteration (ms): 100.5 | global batch size: 8 |";
  for (const char* word : {"", "[default7]:", "0: ", "[node3:1]: ", "worker-0 | ", "\033[32m7:\033[0m "}) {
    const std::string prefix = word;
    CAPTURE(prefix);
    const TrainingLog log = read_training_log(fmt::format("{} iteration       10/    20 | {}\r\n", prefix, figures));
    REQUIRE(log.iterations.size() == 1);
    CHECK(log.iterations[0].last == 10);
    CHECK(log.iterations[0].global_batch == 8);
  }
  const TrainingLog both = read_training_log(
      "[Rank 0] (after 2 iterations) memory (MB) | allocated: 100.5 | max allocated: 200.0 | reserved: 300.0 | max "
      "reserved: 400.0[Rank 8] (after 2 iterations) memory (MB) | allocated: 50.0 | max allocated: 60.0 | reserved: "
      "70.0 "
      "| max reserved: 80.0 iteration 2/4 | elapsed time per iteration (ms): 7.0 | iteration 3/4 | elapsed time per "
      "iteration (ms): 9.0 |\rprogress bar\r");
  REQUIRE(both.memory.size() == 2);
  CHECK(both.memory[0] == LoggedMemory{0, 2, false, Bytes{201 * 524288}, 200_MiB, 300_MiB, 400_MiB});
  CHECK(both.memory[1].rank == 8);
  CHECK(both.memory[1].max_reserved == 80_MiB);
  REQUIRE(both.iterations.size() == 2);
  CHECK(both.iterations[1].each.value == Approx(0.009));
}

TEST_CASE("training log: older words, nonsense, and what only looks like a figure") {
  const TrainingLog old = read_training_log(
      "[Rank 3] (after 100 iterations) memory (MB) | allocated: 1.0 | max allocated: 2.0 | cached: 3.0 | max cached: "
      "4.0\n");
  REQUIRE(old.memory.size() == 1);
  CHECK(old.memory[0].max_reserved == 4_MiB);
  const TrainingLog none = read_training_log(
      "iteration nan/5 | elapsed time per iteration (ms): 5.0\niteration 4/5 | elapsed time per iteration (ms): nan |\n"
      "elapsed time per iteration (ms): 3\n[Rank 0] (before save_checkpoint for iteration 4) memory (MB) | allocated: "
      "1\n"
      "[Rank x] (after 2 iterations) memory (MB) | allocated: 1\niteration 7/9 | elapsed time per iteration (ms): -1\n"
      "iteration 8/9 | elapsed time per iteration (ms): 1e300 |\n\xff\xfe ...: (\n ...\n... 5\n");
  CHECK(none.iterations.empty());
  CHECK(none.memory.empty());
  CHECK(none.lines == 10);
}

TEST_CASE("training log: a memory line with a figure that is none is left out and counted") {
  const auto of = [](const std::string& figures) {
    return read_training_log("[Rank 0] (after 2 iterations) memory (MB) | " + figures + "\n");
  };
  for (const char* figures :
       {"allocated: 10.0 | max allocated: nan | reserved: 30.0 | max reserved: 30.0",
        "allocated: inf | max allocated: 20.0 | reserved: 30.0 | max reserved: 30.0",
        "allocated: 10.0 | max allocated: -1.0 | reserved: 30.0 | max reserved: 30.0",
        "allocated: 10.0 | max allocated: 1073741825.0 | reserved: 30.0 | max reserved: 30.0",  // 2^50 bytes and 1 MiB
        "allocated: 10.0 | max allocated: 1e300 | reserved: 30.0 | max reserved: 30.0",
        "allocated: 10.0 | max allocated: 1e999 | reserved: 30.0 | max reserved: 30.0",
        "allocated: 10.0 | max allocated: 20.0 | reserved: 30.0 | max reserved: nan", "allocated: 10.0 | max alloc"}) {
    CAPTURE(figures);
    CHECK(of(figures).memory.empty());
    CHECK(of(figures).memory_skipped == 1);
  }
  const TrainingLog most = of("allocated: 10.0 | max allocated: 1073741824.0");
  REQUIRE(most.memory.size() == 1);
  CHECK(most.memory[0].max_allocated == Bytes{std::int64_t{1} << 50});
  CHECK(most.memory_skipped == 0);
}

TEST_CASE("training log: timers have a colon behind their dots, arguments have none") {
  const TrainingLog log = read_training_log(
      "  seq_length ...................................... 4096\n  data_path ......... ['a b', 'c']\n"
      "(min, max) time across ranks (ms):\n    forward-backward ...............................: (100.25, 120.50)\n"
      "max time across ranks (ms):\n[default3]:    optimizer ......................................: 12.50\n");
  CHECK(log.arguments.at("seq_length") == "4096");
  CHECK(log.arguments.at("data_path") == "['a b', 'c']");
  CHECK(log.timers.at("forward-backward") == std::vector<Seconds>{{0.1205}});
  CHECK(log.timers.at("optimizer") == std::vector<Seconds>{{0.0125}});
}

TEST_CASE("training log: the logs of the measured runs") {
  const TrainingLog resident = read_training_log(contents("resident-1.8b.log"));
  REQUIRE(resident.iterations.size() == 5);
  CHECK(resident.iterations[4].each.value == Approx(0.5152).epsilon(1e-4));
  REQUIRE(resident.memory.size() == 2);
  CHECK(std::abs(resident.memory[1].max_allocated.value - 42863197696) < 10486);  // printed to 0.01 MiB
  CHECK(resident.theoretical_state == Bytes{std::llround(31186.2 * 1048576)});
  CHECK(resident.timers.at("optimizer").size() == 5);
  CHECK(resident.arguments.at("num_layers") == "24");

  const TrainingLog chunked = read_training_log(contents("chunked-1.8b.log"));
  REQUIRE(chunked.iterations.size() == 5);
  CHECK_FALSE(chunked.iterations[2].after_pause);
  CHECK(chunked.iterations[3].after_pause);  // a save
  CHECK(chunked.arguments.at("offload_optimizer_states") == "True");
}

TEST_CASE("steady step: a process' first iterations, skips, pauses and outliers are left out") {
  const std::string skip = " number of skipped iterations:   1 | number of nan iterations:   0 |";
  std::string text = line(1, 9000) + line(2, 4600) + steady(3, 8, 100) + line(9, 40, skip) + line(10, 101);
  text += "saving checkpoint at iteration      10 to /x in torch_dist format\n" + line(11, 130);
  text += " validation loss at iteration 11 | lm loss value: 1\n" + line(12, 125) + line(13, 99) + line(14, 5000);
  const StepSample sample = steady_step(read_training_log(text), 64, "log");
  CHECK(sample.lines == 14);
  CHECK(sample.first == 2);
  CHECK(sample.skipped == 1);
  CHECK(sample.after_pause == 2);
  CHECK(sample.outliers == 1);
  CHECK(sample.used == 8);
  CHECK(sample.median.value == Approx(0.1));
  CHECK(sample.deviation.value == Approx(0.0).margin(1e-12));
}

TEST_CASE("steady step: another process begins where numbers do not grow, and where Megatron says so") {
  const std::string again = line(1, 9000) + steady(2, 6, 100) + line(4, 9000) + line(5, 4000) + steady(6, 9, 100);
  const StepSample sample = steady_step(read_training_log(again), 64, "log");
  CHECK(sample.first == 4);
  CHECK(sample.outliers == 0);
  const std::string said = steady(1, 5, 100) + "[before the start of training step] datetime: 2026-01-01 00:00:00 \n" +
                           line(6, 900) + line(7, 500) + steady(8, 9, 100);
  CHECK(steady_step(read_training_log(said), 64, "log").first == 4);
}

TEST_CASE("steady step: half of the lines may be anything, and the median stays") {
  std::string text = line(1, 1) + line(2, 1);
  for (int i = 3; i < 24; ++i) text += line(i, i % 2 == 0 ? 300 + 70 * i : 200 + 0.1 * i);
  const StepSample sample = steady_step(read_training_log(text), 64, "log");
  CHECK(sample.median.value == Approx(0.2).epsilon(0.02));
}

TEST_CASE("steady step: of batches that grow only the job's counts") {
  std::string text = steady(1, 20, 50);
  for (int i = 21; i <= 26; ++i)
    text += fmt::format(" iteration {}/99 | elapsed time per iteration (ms): 80.0 | global batch size: 128 |\n", i);
  CHECK(steady_step(read_training_log(text), 128, "log").median.value == Approx(0.08));
  CHECK(steady_step(read_training_log(text), 64, "log").other_batch == 6);
  CHECK_THROWS_AS(steady_step(read_training_log(text), 32, "log"), InputError);
  CHECK_THROWS_WITH(steady_step(read_training_log(text), 32, "log"), Catch::Contains("global batch of 128"));
}

TEST_CASE("steady step: a log without a line, and one of first lines only") {
  CHECK_THROWS_WITH(
      steady_step(read_training_log("hello\nworld\n"), 64, "train.log"),
      Catch::Contains("train.log: none of its 2 lines") && Catch::Contains("elapsed time per iteration (ms)"));
  const StepSample sample = steady_step(read_training_log(line(10, 700) + line(20, 600)), 64, "log");
  CHECK(sample.warm_up_only);
  CHECK(sample.used == 1);
  CHECK(sample.median.value == Approx(0.6));
}
