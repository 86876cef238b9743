// `ebb fit`, `ebb sweep` and `--set`, from outside: the longest sequence is one that the simulator confirms on both
// sides, and a sweep's rows are what plan says.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run_ebb.hpp"

using namespace ebb::test;
using nlohmann::json;

namespace {

const std::string kLlama = "models/jobs/llama3-8b-hgx-h200.yaml";

std::string candidate_arguments(const json& candidate) {
  std::string text = "--policy " + candidate.at("policy").get<std::string>();
  if (!candidate.at("chunk_numel").is_null())
    text += fmt::format(" --chunk-numel {}", candidate.at("chunk_numel").get<std::int64_t>());
  if (!candidate.at("chunk_size_mb").is_null())
    text += fmt::format(" --chunk-size-mb {}", candidate.at("chunk_size_mb").get<std::int64_t>());
  if (!candidate.at("fraction").is_null())
    text += fmt::format(" --fraction {}", candidate.at("fraction").get<double>());
  return text;
}

json simulate(std::int64_t sequence, const std::string& candidate) {
  const Outcome outcome =
      run_ebb(fmt::format("simulate {} --set batch.sequence={} {} --json", kLlama, sequence, candidate));
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("the simulator confirms both sides of the longest sequence, with and without offload") {
  const Outcome outcome = run_ebb("fit " + kLlama + " --max sequence --json");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const json fit = json::parse(outcome.out);
  CHECK(fit.at("step") == 128);
  REQUIRE(fit.at("limits").size() == 2);
  for (const json& limit : fit.at("limits")) {
    const std::int64_t longest = limit.at("fits").at("value");
    INFO("offload " << limit.at("offload") << ", longest " << longest);
    CHECK(longest % 128 == 0);
    CHECK(limit.at("breaks").at("value") == longest + 128);
    const json& last = limit.at("fits").at("candidate");
    const json fits = simulate(longest, candidate_arguments(last));
    CHECK(fits.at("feasible") == true);
    CHECK(fits.at("device_reserved_bytes") == last.at("device_reserved_bytes"));
    CHECK(fits.at("step_seconds") == last.at("step_seconds"));
    // One step on neither this candidate fits, nor the one that needs least.
    CHECK(simulate(longest + 128, candidate_arguments(last)).at("feasible") == false);
    CHECK(simulate(longest + 128, candidate_arguments(limit.at("breaks").at("candidate"))).at("feasible") == false);
  }
  const std::int64_t offloaded = fit.at("limits")[0].at("fits").at("value");
  const std::int64_t resident = fit.at("limits")[1].at("fits").at("value");
  CHECK(fit.at("limits")[1].at("fits").at("candidate").at("policy") == "resident");
  CHECK(offloaded > resident);
  // Whole packings of each policy that leave as little as they can: none of them is missed.
  for (const char* candidate : {"--policy full-reload", "--policy chunked --chunk-numel 1e6", "--policy cpu-adam",
                                "--policy windowed --chunk-size-mb 64", "--policy windowed --chunk-size-mb 256"})
    CHECK(simulate(offloaded + 128, candidate).at("feasible") == false);
  CHECK(run_ebb(fmt::format("plan {} --set batch.sequence={}", kLlama, offloaded)).code == 0);
  CHECK(run_ebb(fmt::format("plan {} --set batch.sequence={}", kLlama, offloaded + 128)).code == 1);
}

TEST_CASE("fit in text fits a terminal, says what breaks, and refuses what it does not know") {
  const Outcome text = run_ebb("fit " + kMeasured + " --min gpus --budget 30GiB");
  CHECK(text.code == 0);
  CHECK(holds(text.out, "fewest GPUs: 1 with offload, 4 without; the job has 1"));
  CHECK(std::count(text.out.begin(), text.out.end(), '\n') <= 24);
  check_rejected("fit " + kMeasured, 2, "fit needs a goal");
  check_rejected("fit " + kMeasured + " --max sequense", 2, "did you mean \"sequence\"");
  check_rejected("fit " + kMeasured + " --max gpus", 2, "known values: sequence, micro-batch, layers");
}

TEST_CASE("a row of a sweep is the recommendation of plan for the same settings") {
  const std::string sets[] = {"link.h2d=26GB/s", "link.h2d=52GB/s"};
  const Outcome outcome = run_ebb("sweep " + kMeasured + " --set link.h2d=26..52GB/s*2 --budget 30GiB --json");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const json sweep = json::parse(outcome.out);
  REQUIRE(sweep.at("rows").size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    INFO(sets[i]);
    CHECK(sweep.at("rows")[i].at("values")[0] == sets[i].substr(9));
    const json plan = json::parse(run_ebb("plan " + kMeasured + " --set " + sets[i] + " --budget 30GiB --json").out);
    CHECK(sweep.at("rows")[i].at("candidate").at("flags") == plan.at("recommendation").at("flags"));
    CHECK(sweep.at("rows")[i].at("candidate").at("step_seconds") == plan.at("recommendation").at("step_seconds"));
  }
  CHECK(sweep.at("rows")[0].at("candidate").at("step_seconds") >
        sweep.at("rows")[1].at("candidate").at("step_seconds"));
}

TEST_CASE("a job that breaks a rule is a row of a sweep, and the others are answered") {
  const Outcome outcome = run_ebb("sweep " + kLlama + " --set parallel.tensor=3,1 --json");
  REQUIRE(outcome.code == 0);
  const json rows = json::parse(outcome.out).at("rows");
  CHECK(rows[0].at("candidate").is_null());
  CHECK(holds(rows[0].at("obstacle"), "--set parallel.tensor=3: "));
  CHECK(rows[1].at("fits") == true);
  const std::string again = run_ebb("sweep " + kLlama + " --set parallel.tensor=3,1 --json").out;
  CHECK(again == outcome.out);
  check_rejected("sweep " + kLlama + " --set paralel.tensor=1,2", 2, "did you mean \"parallel\"");
}

TEST_CASE("plan says which objective it followed") {
  const auto plan = [](const std::string& arguments) {
    const Outcome outcome = run_ebb("plan " + kMeasured + " --json " + arguments);
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out);
  };
  const json step = plan("");
  const json memory = plan("--objective memory");
  const json& least = memory.at("recommendation");
  CHECK(step.at("recommendation").at("policy") == "resident");
  CHECK(memory.at("objective") == "memory");
  CHECK(holds(least.at("reason"), "least device memory"));
  for (const json& candidate : memory.at("front"))
    if (candidate.at("deployable") == true && candidate.at("feasible") == true)
      CHECK(candidate.at("device_reserved_bytes") >= least.at("device_reserved_bytes"));
  check_rejected("plan " + kMeasured + " --objective speed", 2, "known values: step, memory, balanced");
}

TEST_CASE("a job that names a schedule of Ebb's own is answered about it: plan, fit and sweep") {
  for (const std::string policy : {"pipelined", "tidal"}) {
    const std::string named = fmt::format("{} --set offload.policy={}", kLlama, policy);
    const Outcome text = run_ebb("plan " + named);
    INFO(text.out << text.err);
    CHECK(text.code == 0);
    CHECK(text.out.rfind("no flag\ntakes it: Ebb's own runtime; no Megatron-LM has this schedule\n", 0) == 0);
    const json pick = json::parse(run_ebb("plan " + named + " --json").out).at("recommendation");
    CHECK(pick.at("policy") == policy);
    CHECK(pick.at("flags").empty());
    CHECK(pick.at("deployable") == false);
    std::string candidate = candidate_arguments(pick);
    if (policy == "pipelined") candidate += fmt::format(" --slots {}", pick.at("slots").get<int>());
    const json alone = simulate(16384, candidate);
    CHECK(alone.at("step_seconds") == pick.at("step_seconds"));
    CHECK(alone.at("device_reserved_bytes") == pick.at("device_reserved_bytes"));

    const Outcome fit = run_ebb("fit " + named + " --max sequence --json");
    CHECK(fit.code == 0);
    const json limit = json::parse(fit.out).at("limits")[0];
    CHECK(limit.at("fits").at("candidate").at("policy") == policy);
    CHECK(limit.at("fits").at("value").get<std::int64_t>() >= 16384);
    const Outcome sweep = run_ebb(fmt::format("sweep {} --policy {} --set batch.micro=1,2 --json", kLlama, policy));
    CHECK(sweep.code == 0);
    const json rows = json::parse(sweep.out).at("rows");
    CHECK(rows[0].at("fits") == true);
    CHECK(rows[1].at("fits") == false);  // twice the activations
    for (const json& row : rows) CHECK(row.at("candidate").at("policy") == policy);
    const Outcome small = run_ebb("plan " + named + " --budget 60GiB");
    CHECK(small.code == 1);
    CHECK(holds(small.out, "nothing fits: the nearest is " + policy));
  }
  check_rejected("plan " + kLlama + " --set offload.policy=tidal --megatron main", 2, "leave out --megatron");
}

TEST_CASE("a chunk larger than a rank's state is remarked on, unless --quiet") {
  const std::string huge = "simulate " + kLlama + " --policy tidal --chunk-numel 1e11";
  CHECK(holds(run_ebb(huge).err, "--chunk-numel: 100,000,000,000 elements are more than the 1,003,782,656"));
  CHECK(run_ebb(huge + " --quiet").err.empty());
  CHECK(run_ebb("simulate " + kLlama + " --policy tidal --chunk-numel 1e9").err.empty());
  CHECK(holds(run_ebb("plan " + kLlama + " --set offload.policy=tidal --set offload.chunk_numel=2e9").err,
              "--set offload.chunk_numel=2e9: 2,000,000,000 elements are more than"));
}
