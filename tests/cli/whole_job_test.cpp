// The commands about a whole job, from outside: explain, resumes, import, score.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_ebb.hpp"

using namespace ebb;
using namespace ebb::test;

TEST_CASE("explain follows a peak to its terms, which add up to it, and draws the step") {
  for (const char* job : {"llama3-70b-hgx-h200", "deepseek-v3-2048xh200", "qwen3-235b-a22b-hgx-h100"}) {
    const std::string file = "models/jobs/" + std::string(job) + ".yaml";
    INFO(file);
    const Outcome all = run_ebb("explain " + file + " --json");
    REQUIRE(all.code == 0);
    const auto list = nlohmann::json::parse(all.out);
    for (const char* name :
         {"init", "load", "first-step", "forward", "backward", "finalize", "step", "gather", "skip", "save"})
      CHECK(std::any_of(list.at("phases").begin(), list.at("phases").end(),
                        [&](const auto& phase) { return phase.at("name") == name; }));
    const Outcome one = run_ebb("explain " + file + " --phase step --json");
    REQUIRE(one.code == 0);
    const auto json = nlohmann::json::parse(one.out);
    REQUIRE(json.at("phases").size() == 1);
    const auto& step = json.at("phases")[0];
    std::int64_t sum = 0;
    for (const auto& term : step.at("terms")) {
      sum += term.at("bytes").get<std::int64_t>();
      CHECK_FALSE(term.at("origin").get<std::string>().empty());
    }
    CHECK(sum == step.at("device_peak_bytes"));
    CHECK(json.at("curve").size() > 100);
    CHECK(json.at("curve").size() <= 2000);
    CHECK(json.at("curve").back()[0] <= json.at("step_seconds").get<double>() * 1.0001);
    CHECK(run_ebb("explain " + file + " --phase step --json").out == one.out);
  }
  const Outcome text = run_ebb("explain " + kMeasured + " --policy chunked --chunk-numel 1e9 --phase load");
  CHECK(text.code == 0);
  CHECK(holds(text.out, "master weights"));
  CHECK(holds(text.out, "live bytes over a steady step"));
  check_rejected("explain " + kMeasured + " --phase stp", 2, "did you mean \"step\"");
  check_rejected("explain " + kMeasured + " --phase gather", 2, "this job has no phase");
}

TEST_CASE("plan says when a resume would not fit, and a job that starts with one is refused for it") {
  const std::string job =
      "model: megatron-1.8b\ncluster: h200-1gpu\nparallel: {gpus: 1}\n"
      "batch: {micro: 1, global: 4, sequence: 2048}\nbudget: {device: 30GiB}\noffload: {policy: chunked}\n";
  const Outcome fresh = run_ebb("plan " + write_job("fresh.yaml", job).string());
  CHECK(fresh.code == 0);
  CHECK(holds(fresh.out, "beware: a resume with optimizer state"));
  const std::string resumes = job + "checkpoint: {start: resume}\n";
  const Outcome refused = run_ebb("plan " + write_job("resumes.yaml", resumes).string());
  CHECK(refused.code == 1);
  CHECK(holds(refused.out, ", loading"));
}

// Megatron-LM prints 147 shards of 1,816,758,272 elements, the largest 103,022,592, and 27 chunks at 512 MiB.

TEST_CASE("import writes a job that answers as the imported file does") {
  const std::string script = "tests/data/megatron/scripts/llama3_8b_fp8.sh";
  const Outcome imported = run_ebb("import megatron " + script + " --cluster hgx-h200");
  REQUIRE(imported.code == 0);
  REQUIRE(imported.err.empty());
  REQUIRE(imported.out.find("\ncluster: hgx-h200\n") != std::string::npos);
  REQUIRE(imported.out.find("# Ignored") != std::string::npos);
  const fs::path job = scratch() / "llama3_8b_fp8.yaml";
  std::ofstream(job) << run_ebb("import megatron " + script).out;
  const Outcome from_job = run_ebb("plan " + job.string() + " --json");
  const Outcome direct = run_ebb("plan " + script + " --json");
  REQUIRE(from_job.code == direct.code);
  REQUIRE(nlohmann::json::parse(direct.out).at("candidates") == nlohmann::json::parse(from_job.out).at("candidates"));

  const Outcome hf = run_ebb("import hf tests/data/hf/qwen3-30b-a3b/config.json --gpus 16");
  REQUIRE(hf.code == 0);
  REQUIRE(hf.out.find("  gpus: 16\n") != std::string::npos);
  REQUIRE(run_ebb("layout tests/data/hf/llama3-8b/config.json --rank 0").code == 0);
  REQUIRE(run_ebb("simulate tests/data/megatron/scripts/mixtral_8x7b.sh --policy resident").code == 0);
  const Outcome list = run_ebb("import megatron tests/data/megatron/scripts/arguments.txt");
  REQUIRE(list.code == 2);
  REQUIRE(list.err.find("give --gpus") != std::string::npos);
  REQUIRE(run_ebb("import gguf x").code == 2);
}

TEST_CASE("score answers recorded runs: every case once, null where it gives a reason") {
  const Outcome text = run_ebb("score tests/data/megatron/recorded.json");
  CHECK(text.code == 0);
  CHECK(text.err.empty());
  const Outcome document = run_ebb("score tests/data/megatron/recorded.json --json");
  CHECK(document.code == 0);
  const nlohmann::json json = nlohmann::json::parse(document.out);
  const nlohmann::json recorded =
      nlohmann::json::parse(text_of_file(EBB_SOURCE_DIR "/tests/data/megatron/recorded.json"));
  REQUIRE(json["cases"].size() == recorded["cases"].size());
  for (std::size_t i = 0; i < json["cases"].size(); ++i) {
    const nlohmann::json& scored = json["cases"][i];
    const nlohmann::json& run = recorded["cases"][i];
    INFO(run["id"].get<std::string>());
    CHECK(scored["id"] == run["id"]);
    CHECK(scored["recorded_allocated_bytes"] == run["measured"]["allocated_bytes_last"]);
    CHECK(scored["recorded_peak_bytes"] == run["measured"]["max_allocated_bytes_last"]);
    CHECK(scored["recorded_iteration_seconds"] == run["measured"]["iteration_s_median"]);
    for (const char* key : {"predicted_allocated_bytes", "predicted_peak_bytes", "predicted_iteration_seconds"})
      CHECK(scored[key].is_null() == scored["reason"].is_string());
    CHECK(text.out.find(run["id"].get<std::string>()) != std::string::npos);
  }
  CHECK(run_ebb("score tests/data/megatron/none.json").code == 2);
  CHECK(run_ebb("score README.md").code == 2);
}

TEST_CASE("a batch beyond all time is bad input, not a failed assertion") {
  const fs::path job = scratch() / "forever.yaml";
  std::ofstream(job) << "model: llama3-8b\ncluster: hgx-h200\nparallel: {gpus: 8}\n"
                        "batch: {micro: 1, global: 1000000000, sequence: 8192}\n";
  const Outcome outcome = run_ebb("plan " + job.string());
  CHECK(outcome.code == 2);
  CHECK(holds(outcome.err, "more than 11 days"));
}

TEST_CASE("a score without a modelled case has no errors, not errors of 0") {
  const fs::path file = scratch() / "none.json";
  std::ofstream(file) << R"({"cases": []})";
  const Outcome outcome = run_ebb("score " + file.string() + " --json");
  REQUIRE(outcome.code == 0);
  CHECK(nlohmann::json::parse(outcome.out).at("peak").at("median").is_null());
}

TEST_CASE("explain takes the Megatron of plan, whose last line names it, and explains the same candidate") {
  const std::string job = "llama3-8b-hgx-h200 --megatron main";
  const Outcome plan = run_ebb("plan " + job);
  CHECK(holds(plan.out, "Also: ebb explain JOB --megatron main (why)"));
  CHECK(holds(run_ebb("plan llama3-8b-hgx-h200").out, "Also: ebb explain JOB (why)"));
  const auto planned = nlohmann::json::parse(run_ebb("plan " + job + " --json").out).at("recommendation");
  const auto explained = nlohmann::json::parse(run_ebb("explain " + job + " --json").out);
  for (const char* key : {"policy", "flags", "step_seconds", "deployable"}) CHECK(explained.at(key) == planned.at(key));
  const auto asked = nlohmann::json::parse(
      run_ebb("explain " + job + " --policy windowed --chunk-size-mb 128 --phase step --json").out);
  CHECK(asked.at("deployable") == false);
  check_rejected("explain llama3-8b-hgx-h200 --megatron mian", 2, "main");
}
