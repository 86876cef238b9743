// The `ebb` program from outside: exit codes, what goes to stdout and what to stderr, valid and repeatable JSON for
// every job of the library, and one helpful message for each kind of bad input.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/plan_json.hpp"
#include "models/text_file.hpp"
#include "planner/verify.hpp"
#include "tests/cli/run_ebb.hpp"
#include "tests/planner/life_cases.hpp"

using namespace ebb;
using namespace ebb::test;

namespace {

/// What the recommendation, every candidate and `simulate` say of a candidate.
void check_candidate(const nlohmann::json& candidate) {
  for (const char* field :
       {"policy", "chunk_numel", "chunk_size_mb", "fraction", "slots", "flags", "requires", "device_peak_bytes",
        "device_reserved_bytes", "device_reserved_likely_bytes", "host_pinned_bytes_per_rank",
        "host_pinned_bytes_per_host", "optimizer_seconds", "step_seconds", "reason"}) {
    INFO(field);
    CHECK(candidate.contains(field));
  }
}

}  // namespace

TEST_CASE("every job of the library is answered with valid JSON and nothing on stderr") {
  const std::vector<std::string> jobs = library_jobs();
  REQUIRE(jobs.size() >= 8);
  for (const std::string& job : jobs) {
    INFO(job);
    const Outcome outcome = run_ebb("plan " + job + " --json");
    CHECK(outcome.err == "");
    const auto json = nlohmann::json::parse(outcome.out);
    CHECK(outcome.code == (json.at("recommendation").is_null() ? 1 : 0));
    const auto& candidates = json.at("candidates");
    CHECK(candidates.at(0).at("policy") == "resident");
    for (const auto& candidate : candidates) check_candidate(candidate);
    if (outcome.code == 0) check_candidate(json.at("recommendation"));
    CHECK(std::count_if(candidates.begin(), candidates.end(),
                        [](const auto& candidate) { return candidate.at("requires") != "ebb"; }) <= 8);
    CHECK(std::any_of(candidates.begin(), candidates.end(), [](const auto& candidate) {
      return candidate.at("policy") == "chunked" && candidate.at("chunk_numel") == 1'000'000'000;
    }));
  }
}

TEST_CASE("the production size is shown, but not picked, where the job asks for another schedule") {
  for (const char* offload : {"{policy: windowed}", "{policy: chunked, chunk_numel: 4e8}"}) {
    const fs::path job = write_job("fixed.yaml",
                                   "model: megatron-1.8b\ncluster: h200-1gpu\nparallel: {gpus: 1}\n"
                                   "batch: {micro: 1, global: 4, sequence: 2048}\n"
                                   "offload: " +
                                       std::string(offload) + "\n");
    const auto json = nlohmann::json::parse(run_ebb("plan " + job.string() + " --json").out);
    const auto& candidates = json.at("candidates");
    CHECK(std::count_if(candidates.begin(), candidates.end(), [](const auto& candidate) {
            return candidate.at("policy") == "chunked" && candidate.at("chunk_numel") == 1'000'000'000;
          }) == 1);
    REQUIRE(json.at("recommendation").is_object());
    CHECK(json.at("recommendation").at("chunk_numel") != 1'000'000'000);
  }
}

TEST_CASE("the same command twice gives the same bytes") {
  for (const char* arguments :
       {"plan models/jobs/measured-1.8b-1xh200.yaml --budget 30GiB --json",
        "plan models/jobs/deepseek-v3-2048xh200.yaml --json",
        "simulate models/jobs/mixtral-8x7b-hgx-h200.yaml --policy windowed --chunk-size-mb 256 --json",
        "layout models/jobs/mixtral-8x7b-hgx-h200.yaml --rank 9 --json"}) {
    const Outcome once = run_ebb(arguments);
    CHECK(once.code == 0);
    CHECK(once.out == run_ebb(arguments).out);
  }
}

TEST_CASE("a plan begins with what to paste, without colour in a pipe") {
  const Outcome outcome = run_ebb("plan " + kMeasured + " --budget 22GiB --megatron pr6544");
  CHECK(outcome.code == 0);
  CHECK(outcome.out.rfind("--offload-optimizer-states --offload-optimizer-states-chunk-numel ", 0) == 0);
  CHECK_FALSE(holds(outcome.out, "\033"));
  CHECK(holds(outcome.out, "Next: ebb simulate " + kMeasured + " --policy chunked --chunk-numel "));
}

// The committed run on an H200 against the prediction with that host's calibrated cluster.
TEST_CASE("the README shows what its comparison prints") {
  const std::string data = EBB_SOURCE_DIR "/tests/data/replay/h200-2026-11-30/";
  const std::string plan = (scratch() / "readme.plan.json").string();
  const std::string predicted = (scratch() / "readme.predicted.json").string();
  REQUIRE(run_ebb("simulate measured-1.8b-1xh200 --policy pipelined --chunk-numel 4194304 --slots 4 -o " + plan).code ==
          0);
  REQUIRE(run_ebb("simulate --plan " + plan + " --cluster " + data + "cluster.yaml --timeline " + predicted).code == 0);
  const Outcome outcome = run_ebb("diff " + predicted + " " + data +
                                  "measured-1.8b-1xh200-pipelined-chunk-numel-4194304-slots-4.measured.json");
  CHECK(outcome.code == 0);
  const std::string verdict = outcome.out.substr(0, outcome.out.find('\n') + 1);
  const std::size_t table = outcome.out.find("                predicted");
  REQUIRE(table != std::string::npos);
  const std::size_t end = outcome.out.find("\n\n", table);
  CHECK(holds(text_of_file(EBB_SOURCE_DIR "/README.md"),
              "```\n" + verdict + "\n" + outcome.out.substr(table, end + 1 - table) + "```\n"));
}

TEST_CASE("when nothing fits the exit code is 1 and the answer says what would help") {
  const Outcome outcome = run_ebb("plan " + kMeasured + " --budget 12GiB");
  CHECK(outcome.code == 1);
  CHECK(outcome.err == "");
  CHECK(outcome.out.rfind("nothing fits: ", 0) == 0);
  CHECK(holds(outcome.out, "would cure it: --budget "));
}

TEST_CASE("-o writes a plan that loads and has no hazards") {
  const fs::path file = scratch() / "plan.json";
  REQUIRE(run_ebb("plan models/jobs/nemotron4-15b-1xh200.yaml -o " + file.string()).code == 0);
  const Plan recommended = plans_from_json(text_of_file(file), file.string()).front();
  CHECK(recommended.candidate.policy == Policy::chunked);
  CHECK(verify(recommended).empty());
  REQUIRE(
      run_ebb("simulate " + kMeasured + " --policy pipelined --chunk-numel 16Mi --slots 3 -o " + file.string()).code ==
      0);
  CHECK(plans_from_json(text_of_file(file), file.string()).front().candidate.slots == 3);
}

TEST_CASE("simulate --life writes a plan of every part of every rank, and a table of their peaks") {
  const fs::path file = fs::temp_directory_path() / "ebb-life-test.json";
  const Outcome life = run_ebb(
      "simulate llama3-8b-hgx-h200 --policy chunked --chunk-numel 1e9 --life --gpus 2 --json -o " + file.string());
  REQUIRE(life.code == 0);
  const auto json = nlohmann::json::parse(life.out);
  const std::vector<Plan> plans = plans_from_json(read_text_file(file, std::int64_t{1} << 30), file.string());
  fs::remove(file);
  REQUIRE(plans.size() == 2 * kPartCount);
  REQUIRE(json.at("parts").size() == plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    CHECK(verify(plans[i]).empty());
    CHECK_FALSE(plans[i].parameters.empty());
    CHECK(json.at("parts")[i].at("part") == std::string(name_of(plans[i].part)));
    CHECK(json.at("parts")[i].at("live_peak_bytes") == test::live_peak(plans[i]).value);
  }
}

TEST_CASE("simulate answers every policy, phase by phase") {
  for (const char* candidate :
       {"resident", "full-reload", "chunked --chunk-numel 1e9", "windowed --chunk-size-mb 512 --fraction 0.5",
        "cpu-adam --fraction 0.5", "pipelined --slots 3 --chunk-numel 4Mi"}) {
    const Outcome outcome = run_ebb("simulate " + kMeasured + " --json --policy " + candidate);
    INFO(candidate << outcome.err);
    REQUIRE(outcome.code == 0);
    const auto json = nlohmann::json::parse(outcome.out);
    check_candidate(json);
    double seconds = 0;
    std::int64_t peak = 0;
    std::vector<std::string> names;
    for (const auto& phase : json.at("phases")) {
      names.push_back(phase.at("name"));
      for (const char* key : {"host_pinned_bytes", "host_pageable_bytes", "host_pinned_bytes_per_node",
                              "exposed_seconds", "device_reserved_bytes", "device_upper_bytes", "uncertainty"})
        CHECK(phase.contains(key));
      if (!phase.at("in_step")) continue;
      seconds += phase.at("seconds").get<double>();
      peak = std::max(peak, phase.at("device_peak_bytes").get<std::int64_t>());
    }
    CHECK(names == std::vector<std::string>{"init", "first-step", "forward", "backward", "finalize", "step", "skip",
                                            "save", "load", "first-step"});
    CHECK(seconds == Approx(json.at("step_seconds").get<double>()));
    // Phases replay tensor by tensor, the candidate's peak is the plan's.
    const auto plan_peak = json.at("device_peak_bytes").get<double>();
    CHECK(std::abs(static_cast<double>(peak) / plan_peak - 1) < 0.03);
  }
}

TEST_CASE("layout shows shards, buckets and chunks") {
  const Outcome outcome = run_ebb("layout " + kMeasured + " --rank 0 --policy windowed --chunk-size-mb 512 --json");
  REQUIRE(outcome.code == 0);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json.at("shards").size() == 147);
  CHECK(json.at("owned_numel") == 1'816'758'272);
  CHECK(json.at("largest_shard_numel") == 103'022'592);
  CHECK(json.at("buckets").size() == 1);
  CHECK(json.at("chunks").size() == 27);
  CHECK(json.at("chunks")[0].at("numel") == 103'022'592);
  CHECK(json.at("chunks")[26].at("numel") == 100'352);
}

TEST_CASE("help and version go to stdout") {
  CHECK(run_ebb("--version").out.rfind("ebb ", 0) == 0);
  for (const char* command : {"--help", "plan --help", "simulate --help", "check --help", "layout --help"}) {
    const Outcome outcome = run_ebb(command);
    CHECK(outcome.code == 0);
    CHECK(outcome.err == "");
    CHECK(holds(outcome.out, "Example"));
  }
}

TEST_CASE("wrong command lines: exit 2, one message") {
  check_rejected("", 2, "no command was given");
  check_rejected("plam " + kMeasured, 2, "did you mean \"plan\"?");
  check_rejected("plan", 2, "JOB");
  check_rejected("plan " + kMeasured + " " + kMeasured, 2, "not expected");
  check_rejected("plan " + kMeasured + " --buget 3", 2, "--buget");
  check_rejected("plan " + kMeasured + " --budget", 2, "--budget");
  check_rejected("plan " + kMeasured + " --budget 1GiB --budget 2GiB", 2, "--budget");
  check_rejected("plan " + kMeasured + " --budget nan", 2, "--budget");
  check_rejected("plan " + kMeasured + " --budget=-5", 2, "negative");
  check_rejected("plan " + kMeasured + " --budget 0", 2, "not positive");
  check_rejected("plan " + kMeasured + " --budget 5XB", 2, "unknown unit");
  check_rejected("plan " + kMeasured + " --megatron master", 2, "main");
  check_rejected("simulate " + kMeasured, 2, "--policy");
  check_rejected("simulate " + kMeasured + " --policy chunkt --chunk-numel 1", 2, "did you mean \"chunked\"");
  check_rejected("simulate " + kMeasured + " --policy chunked", 2, "--chunk-numel");
  check_rejected("simulate " + kMeasured + " --policy chunked --chunk-numel -5", 2, "negative");
  check_rejected("simulate " + kMeasured + " --policy chunked --chunk-numel 0", 2, "--chunk-numel");
  check_rejected("simulate " + kMeasured + " --policy chunked --chunk-numel 1e30", 2, "out of range");
  check_rejected("simulate " + kMeasured + " --policy chunked --chunk-numel 1e9 --chunk-size-mb 5", 2,
                 "does not use a chunk size");
  check_rejected("simulate " + kMeasured + " --policy windowed --fraction 1.5", 2, "(0, 1]");
  check_rejected("simulate " + kMeasured + " --policy pipelined --slots 1", 2, "--slots");
  check_rejected("simulate " + kMeasured + " --policy pipelined --chunk-numel 1", 2, "use at least 110887");
  check_rejected("layout " + kMeasured, 2, "--rank");
  check_rejected("layout " + kMeasured + " --rank 1", 2, "outside");
  check_rejected("layout " + kMeasured + " --rank=-1", 2, "--rank");
  check_rejected("layout " + kMeasured + " --rank 0.5", 2, "--rank");
  check_rejected("layout " + kMeasured + " --rank 0 --chunk-numel 5 --chunk-size-mb 5", 2, "does not use");
}

TEST_CASE("wrong jobs: exit 2, one message that names the place") {
  check_rejected("plan no/such/job.yaml", 2, "no/such/job.yaml");
  check_rejected("plan models", 2, "models");
  check_rejected("plan ''", 2, "");
  const fs::path unknown = write_job("unknown.yaml", "model: llama3-8c\ncluster: hgx-h200\nbatch: {global: 8}\n");
  check_rejected("plan " + unknown.string(), 2, "unknown.yaml:1:");
  const fs::path heads = write_job("heads.yaml",
                                   "model: llama3-8b\ncluster: hgx-h200\nparallel: {gpus: 24, tensor: 3}\n"
                                   "batch: {micro: 1, global: 8, sequence: 4096}\n");
  check_rejected("plan " + heads.string(), 2, "heads.yaml:3:", 3);  // heads, groups and ffn
  check_rejected("plan " + heads.string(), 2, "use 2 or 4", 3);
}

TEST_CASE("a machine that fails: exit 3, one message") {
  check_rejected("plan " + kMeasured + " -o /no/such/directory/plan.json", 3, "/no/such/directory/plan.json");
  check_rejected("plan " + kMeasured + " -o " + scratch().string(), 3, "cannot write");
  check_rejected("plan " + kMeasured + " >&-", 3, "standard output");
  if (fs::exists("/dev/full")) check_rejected("plan " + kMeasured + " >/dev/full", 3, "standard output");
}

TEST_CASE("a reader that has seen enough is no failure: no message, and the answer's own exit code") {
  const std::string code = (scratch() / "code").string();
  for (const auto& [budget, expected] : {std::pair("22GiB", "0\n"), std::pair("2GiB", "1\n")}) {
    const Outcome outcome = run_ebb("--version >/dev/null; { sleep 0.3; '" EBB_BINARY "' plan " + kMeasured +
                                    " --budget " + budget + "; echo $? >" + code + "; } | true");
    CHECK(text_of_file(code) == expected);
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("no control character of a name reaches the terminal, in messages or results") {
  const std::string hostile = (scratch() / "a\033[2Jb\rc\u009bd.yaml").string();
  const auto clean = [](const std::string& text) {
    return text.find('\033') == std::string::npos && text.find('\r') == std::string::npos && !holds(text, "\u009b");
  };
  const Outcome missing = run_ebb("plan '" + hostile + "'");
  CHECK(missing.code == 2);
  CHECK(holds(missing.err, "a\\u001b[2Jb\\u000dc\\u009bd.yaml"));
  CHECK(clean(missing.err));
  fs::copy_file(fs::path(EBB_SOURCE_DIR) / kMeasured, hostile, fs::copy_options::overwrite_existing);
  const Outcome answered = run_ebb("plan '" + hostile + "' --budget 22GiB -v");
  CHECK(answered.code == 0);
  CHECK(holds(answered.out, "a\\u001b[2Jb"));
  CHECK((clean(answered.out) && clean(answered.err)));
  // As JSON it is the name that it was.
  const auto json = nlohmann::json::parse(run_ebb("plan '" + hostile + "' --budget 22GiB --json").out);
  CHECK(holds(json.at("job").get<std::string>(), "a\033[2Jb\rc\u009bd"));
  const Outcome lines = run_ebb("plan '" + (scratch() / "two\nlines.yaml").string() + "'");
  CHECK(std::count(lines.err.begin(), lines.err.end(), '\n') == 1);
}

TEST_CASE("an output is never what a command reads, nor another output") {
  const fs::path job = scratch() / "kept.yaml";
  fs::copy_file(fs::path(EBB_SOURCE_DIR) / kMeasured, job, fs::copy_options::overwrite_existing);
  const std::string before = text_of_file(job);
  for (const char* option : {"-o ", "--timeline ", "--html ", "--trace "})
    check_rejected("plan " + job.string() + " " + option + job.string(), 2, "would be lost");
  check_rejected(
      "plan " + job.string() + " -o " + scratch().string() + "/../" + scratch().filename().string() + "/kept.yaml", 2,
      "would be lost");
  CHECK(text_of_file(job) == before);
  const std::string one = (scratch() / "one.json").string();
  check_rejected("plan " + kMeasured + " --trace " + one + " --timeline " + one, 2, "also goes to");
  CHECK(run_ebb("plan " + kMeasured + " --timeline /dev/null -o /dev/null").code == 0);
}

TEST_CASE("a sweep of the schedule is not undone by --policy") {
  check_rejected("sweep " + kMeasured + " --set offload.chunk_numel=1e8,1e9 --policy chunked", 2, "--set offload.");
}
