// equivalence, as a library and as the command: equal and lower, equal but not lower, different, not comparable; and
// the command line's exit codes and messages.
#include "replay/equivalence.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "models/errors.hpp"
#include "models/plan_json.hpp"
#include "replay/run_report.hpp"
#include "tests/catch.hpp"
#include "tests/replay/replay_cases.hpp"

using namespace ebb;
using namespace ebb::replay;
using namespace ebb::test;

namespace {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::filesystem::path scratch() {
  const auto path = std::filesystem::temp_directory_path() / ("ebb_replay_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(path);
  return path;
}

Outcome run_replay(const std::string& arguments) {
  const auto out = scratch() / "out";
  const auto err = scratch() / "err";
  const std::string command = "cd '" EBB_TEST_DATA "/replay' && '" EBB_REPLAY_BINARY "' " + arguments + " >" +
                              out.string() + " 2>" + err.string() + " </dev/null";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  Outcome outcome{WEXITSTATUS(status), contents(out), contents(err)};
  std::filesystem::remove_all(scratch());
  return outcome;
}

std::vector<Plan> plans_of(const Job& job, const Candidate& candidate) { return host_plans(job, candidate).plans; }

}  // namespace

TEST_CASE("An offload is equivalent; resident against itself saves nothing; a broken plan is found") {
  Job job = tiny_job();
  job.parallel.gpus = 2;
  const std::vector<Plan> resident = plans_of(job, {.policy = Policy::resident});
  std::vector<Plan> chunked = plans_of(job, {.policy = Policy::chunked, .chunk_numel = {4000}});
  const Equivalence good = compare_on_cpu(compile_all(resident), compile_all(chunked), {}, 3);
  CHECK(good.holds());
  CHECK(good.orders.size() == 6);
  CHECK(to_text(good).find("Equivalent: chunked") != std::string::npos);

  const Equivalence same = compare_on_cpu(compile_all(resident), compile_all(resident), {}, 3);
  CHECK(same.equal());
  CHECK_FALSE(same.lower());
  CHECK(to_text(same).find("its peak is not lower") != std::string::npos);

  // Rank 1's first Adam no longer waits for its moments to arrive.
  for (Op& op : chunked[1].ops) {
    if (op.work != Work::adam) continue;
    op.deps_count = 0;
    break;
  }
  const Equivalence broken = compare_on_cpu(compile_all(resident), compile_all(chunked), {}, 3);
  CHECK_FALSE(broken.equal());
  CHECK(broken.orders[0].difference.empty());  // program order hides it
  CHECK(to_text(broken).find("NOT equivalent") != std::string::npos);
}

TEST_CASE("Plans of different types or ranks are not compared") {
  Job job = tiny_job();
  job.precision.exp_avg = job.precision.exp_avg_sq = Dtype::bf16;
  job.precision.remainders = false;
  const std::vector<Plan> resident = plans_of(job, {.policy = Policy::resident});
  const std::vector<Plan> hybrid = plans_of(job, {.policy = Policy::cpu_adam});
  CHECK_THROWS_WITH(compare_on_cpu(compile_all(resident), compile_all(hybrid), {}, 1),
                    Catch::Contains("cpu-adam steps in fp32"));
  Job two = job;
  two.parallel.gpus = 2;
  const std::vector<Plan> more = plans_of(two, {.policy = Policy::resident});
  CHECK_THROWS_AS(compare_on_cpu(compile_all(resident), compile_all(more), {}, 1), InputError);
}

TEST_CASE("ebb-replay equivalence: exit 0 for an offload, 1 for none, ebb's own 2 for a bad policy") {
  const Outcome good = run_replay("equivalence tiny-moe.yaml --policy pipelined --chunk-numel 5001 --slots 3");
  CHECK(good.code == 0);
  CHECK(good.out.find("Equivalent: pipelined") != std::string::npos);
  const Outcome json = run_replay("equivalence tiny.yaml --policy windowed --chunk-size-mb 1 --steps 2 --json");
  CHECK(json.code == 0);
  CHECK(json.out.find("\"equivalent\":true") != std::string::npos);
  CHECK(run_replay("equivalence tiny.yaml --policy resident --steps 2").code == 1);
  const Outcome bad = run_replay("equivalence tiny.yaml --policy chunked");
  CHECK(bad.code == 2);
  CHECK(bad.err.find("chunk-numel") != std::string::npos);
  const Outcome none = run_replay("equivalence tiny.yaml");
  CHECK(none.code == 2);
  CHECK(none.out.empty());
  CHECK(none.err.find("name one with --policy, or give two plan files") != std::string::npos);
  CHECK(run_replay("equivalence nothing.yaml --policy resident").code == 2);
}

TEST_CASE("ebb-replay equivalence: the policy is the job's own offload block, and options come before it") {
  const auto write = [&](const std::string& offload) {
    const auto job = scratch() / "job.yaml";
    std::ofstream(job) << contents(EBB_TEST_DATA "/replay/tiny.yaml") << "offload: " << offload << "\n";
    return job.string();
  };
  /// Of the document's policy.
  const auto equivalent = [&](const std::string& offload, const std::string& options, const std::string& policy) {
    const Outcome outcome = run_replay("equivalence " + write(offload) + " --steps 2 " + options);
    INFO(offload << " " << options << "\n" << outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK(outcome.out.find("Equivalent: " + policy + " gives the bits") != std::string::npos);
    return outcome.out;
  };
  const std::string own = "{policy: tidal, chunk_numel: 3000}";
  const std::string tidal = equivalent(own, "", "tidal");
  CHECK(tidal == equivalent("{policy: tidal, chunk_numel: 1000}", "--chunk-numel 3000", "tidal"));
  CHECK(tidal == equivalent("{policy: chunked, chunk_numel: 5000}", "--policy tidal --chunk-numel 3000", "tidal"));
  equivalent(own, "--policy chunked --chunk-numel 5000", "chunked");
  equivalent("{policy: pipelined, chunk_numel: 5000, slots: 3}", "", "pipelined");

  // A cap between tidal's default peak (113.3 MiB) and resident's (134.4 MiB) keeps state on the device; one below the
  // least is refused.
  const auto capped = [&](const std::string& options) {
    const Outcome outcome =
        run_replay("equivalence " EBB_SOURCE_DIR "/tests/gpu/replay-small.yaml --steps 2 " + options);
    CHECK(outcome.code == 0);
    return outcome.out;
  };
  const std::string kept = capped("--policy tidal --chunk-numel 100000 --cap 122MiB");
  CHECK(kept.find("121.4 MiB") != std::string::npos);
  CHECK(kept != capped("--policy tidal --chunk-numel 100000"));
  CHECK(run_replay("equivalence " + write("{policy: tidal, chunk_numel: 3000, cap: 1MiB}")).code == 2);
  const Outcome low = run_replay("equivalence " + write(own) + " --cap 1MiB");
  CHECK(low.code == 2);
  CHECK(low.err.find("a cap of 1.000 MiB is below") != std::string::npos);
}

TEST_CASE("ebb-replay --verbose says what takes how long, --quiet nothing, and the result is the same") {
  const std::string job = "equivalence tiny.yaml --policy chunked --chunk-numel 5000 --steps 2";
  const Outcome plain = run_replay(job);
  CHECK(plain.err.empty());
  const Outcome verbose = run_replay(job + " --verbose");
  CHECK(verbose.out == plain.out);
  for (const char* part :
       {"ebb: simulation took ", "ebb-replay: reading the plans of tiny.yaml --policy resident took ",
        "ebb-replay: comparison took "})
    CHECK(verbose.err.find(part) != std::string::npos);
  CHECK(run_replay(job + " --quiet").out == plain.out);
  // What ebb remarks: a chunk that no rank's state fills.
  const std::string wide = "equivalence tiny.yaml --policy pipelined --chunk-numel 1e5";
  CHECK(run_replay(wide + " --steps 1").err.find("more than the") != std::string::npos);
  CHECK(run_replay(wide + " --steps 1 -q").err.empty());
  CHECK(run_replay(job + " -q -v").code == 2);
}

TEST_CASE("ebb-replay run --device cpu prints numbers and refuses a timeline; a damaged plan is exit 2") {
  const auto plan = scratch() / "plan.json";
  const std::vector<Plan> plans = plans_of(tiny_job(), {.policy = Policy::chunked, .chunk_numel = {4000}});
  const auto write = [&] {
    std::filesystem::create_directories(plan.parent_path());
    std::ofstream(plan) << to_json(plans);
  };
  write();
  const Outcome good = run_replay("run " + plan.string() + " --device cpu --digests --warmups 0 --repeats 3 --json");
  INFO(good.err);
  CHECK(good.code == 0);
  TrainingOptions training;
  const RankNumbers numbers = reference(compile_all(plans), {.training = training, .steps = 3}).front();
  CHECK(good.out.find("\"live_peak\":" + std::to_string(numbers.peak_live.value)) != std::string::npos);
  std::ostringstream digest;
  digest << std::hex << numbers.final_state;
  CHECK(good.out.find(digest.str()) != std::string::npos);
  write();
  const Outcome refused = run_replay("run " + plan.string() + " --device cpu -o timeline.json");
  CHECK(refused.code == 2);
  CHECK(refused.err.find("no times") != std::string::npos);
  write();
  std::filesystem::resize_file(plan, 1000);
  CHECK(run_replay("run " + plan.string() + " --device cpu").code == 2);
  CHECK(run_replay("run missing.json --device cpu").code == 2);
  CHECK(run_replay("run").code == 2);
  CHECK(run_replay("rnu x").err.find("did you mean \"run\"") != std::string::npos);
  CHECK(run_replay("--version").out.find("ebb-replay ") == 0);
}

TEST_CASE("Spread and link rates of a measured timeline, by hand") {
  const Ticks times[] = {{30}, {10}, {20}};
  const Spread spread = spread_of(times);
  CHECK(spread.median.value == 20);
  CHECK(spread.least.value == 10);
  CHECK(spread.most.value == 30);

  // In: 100 bytes in [0, 10) and 100 in [5, 20) microseconds. Out: 300 bytes in [10, 40). In another phase: ignored.
  constexpr std::int64_t us = kTicksPerSecond / 1'000'000;
  RankTimeline timeline;
  const auto add = [&](OpKind kind, Phase phase, std::int64_t bytes, std::int64_t start, std::int64_t end) {
    OpSpan span;
    span.kind = kind;
    span.phase = phase;
    span.bytes = {bytes};
    span.start = {start * us};
    span.end = {end * us};
    timeline.ops.push_back(span);
  };
  add(OpKind::copy_h2d, Phase::step, 100, 0, 10);
  add(OpKind::copy_h2d, Phase::step, 100, 5, 20);
  add(OpKind::copy_d2h, Phase::step, 300, 10, 40);
  add(OpKind::copy_d2h, Phase::forward, 999, 0, 1);
  const LinkRates rates = link_rates(timeline);
  CHECK(rates.h2d.value == Approx(200 / 20e-6));
  CHECK(rates.d2h.value == Approx(300 / 30e-6));
  CHECK(rates.together.value == Approx(500 / 40e-6));
}

TEST_CASE("the README shows what its equivalence command prints") {
  const std::string readme = contents(EBB_SOURCE_DIR "/README.md");
  const Outcome outcome =
      run_replay("equivalence ../../gpu/replay-small.yaml --policy pipelined --chunk-numel 100000 --slots 3");
  CHECK(outcome.code == 0);
  const std::string command =
      "$ ebb-replay equivalence tests/gpu/replay-small.yaml --policy pipelined --chunk-numel 100000 --slots 3\n";
  CHECK(readme.find(command + outcome.out + "```") != std::string::npos);
}
