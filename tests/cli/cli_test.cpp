// The `ebb` program from outside: exit codes, what goes to stdout and what to stderr, valid and repeatable JSON for
// every job of the library, and one helpful message for each kind of bad input.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "models/plan_json.hpp"
#include "planner/verify.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

/// A directory of this test's own, removed at the end.
struct Scratch {
  fs::path path = fs::temp_directory_path() / ("ebb_cli_test_" + std::to_string(::getpid()));
  Scratch() { fs::create_directories(path); }
  ~Scratch() { fs::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

const fs::path& scratch() {
  static const Scratch directory;
  return directory.path;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// `ebb` followed by `arguments` (shell syntax). They may redirect stdout themselves.
Outcome run_ebb(const std::string& arguments) {
  const fs::path out = scratch() / "out";
  const fs::path err = scratch() / "err";
  fs::remove(out);
  const std::string command = "cd '" EBB_SOURCE_DIR "' && { '" EBB_BINARY "' " + arguments + "; } >" + out.string() +
                              " 2>" + err.string() + " </dev/null";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), contents(out), contents(err)};
}

fs::path write_job(const std::string& name, const std::string& text) {
  const fs::path path = scratch() / name;
  std::ofstream(path) << text;
  return path;
}

std::vector<std::string> library_jobs() {
  std::vector<std::string> jobs;
  for (const auto& entry : fs::directory_iterator(EBB_SOURCE_DIR "/models/jobs"))
    if (entry.path().extension() == ".yaml") jobs.push_back("models/jobs/" + entry.path().filename().string());
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Bad input: nothing on stdout, one line a problem on stderr, and the message among them.
void check_rejected(const std::string& arguments, int code, const std::string& message, int problems = 1) {
  const Outcome outcome = run_ebb(arguments);
  INFO("ebb " << arguments << "\nstderr: " << outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.rfind("ebb: ", 0) == 0);
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == problems);
  CHECK(holds(outcome.err, message));
}

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

const std::string kMeasured = "models/jobs/measured-1.8b-1xh200.yaml";

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

TEST_CASE("the README shows what its command prints") {
  const Outcome outcome = run_ebb("plan models/jobs/llama3-8b-hgx-h200.yaml");
  CHECK(outcome.code == 0);
  CHECK(holds(contents(EBB_SOURCE_DIR "/README.md"), "\n```\n" + outcome.out + "```\n"));
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
  const Plan recommended = plan_from_json(contents(file), file.string());
  CHECK(recommended.candidate.policy == Policy::chunked);
  CHECK(verify(recommended).empty());
  REQUIRE(
      run_ebb("simulate " + kMeasured + " --policy pipelined --chunk-numel 16Mi --slots 3 -o " + file.string()).code ==
      0);
  CHECK(plan_from_json(contents(file), file.string()).candidate.slots == 3);
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
  CHECK(holds(fresh.out, "beware: a run resumed"));
  const std::string resumes = job + "checkpoint: {start: resume}\n";
  const Outcome refused = run_ebb("plan " + write_job("resumes.yaml", resumes).string());
  CHECK(refused.code == 1);
  CHECK(holds(refused.out, "while its checkpoint is loaded"));
}

// Megatron-LM prints 147 shards of 1,816,758,272 elements, the largest 103,022,592, and 27 chunks at 512 MiB.
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
  const nlohmann::json recorded = nlohmann::json::parse(contents(EBB_SOURCE_DIR "/tests/data/megatron/recorded.json"));
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

TEST_CASE("help and version go to stdout") {
  CHECK(run_ebb("--version").out.rfind("ebb ", 0) == 0);
  for (const char* command : {"--help", "plan --help", "simulate --help", "check --help", "layout --help"}) {
    const Outcome outcome = run_ebb(command);
    CHECK(outcome.code == 0);
    CHECK(outcome.err == "");
    CHECK(holds(outcome.out, "Example"));
  }
}

TEST_CASE("every example of the help texts runs") {
  std::size_t examples = 0;
  for (const char* command : {"--help", "plan --help", "simulate --help", "check --help", "layout --help"}) {
    std::istringstream text(run_ebb(command).out);
    for (std::string line; std::getline(text, line);) {
      const std::size_t at = line.find("ebb ");
      if (at == std::string::npos || !holds(line, "models/jobs/")) continue;
      INFO(line);
      CHECK(run_ebb(line.substr(at + 4)).code == 0);
      ++examples;
    }
  }
  CHECK(examples >= 6);
}

TEST_CASE("wrong command lines: exit 2, one message") {
  check_rejected("", 2, "subcommand");
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

TEST_CASE("check: exit 0 and one line, or exit 2 and every broken rule, with the words that plan refuses with") {
  const std::string good = "model: megatron-1.8b\ncluster: h200-1gpu\nparallel: {gpus: 1}\n";
  const Outcome clean =
      run_ebb("check " + write_job("clean.yaml", good + "batch: {global: 4, sequence: 2048}\n").string());
  CHECK(clean.code == 0);
  CHECK(clean.err == "");
  CHECK(clean.out.rfind("no rule of ", 0) == 0);
  CHECK(std::count(clean.out.begin(), clean.out.end(), '\n') == 1);

  const std::string bad = write_job("bad.yaml", good +
                                                    "batch: {micro: 3, global: 4, sequence: 2048}\n"
                                                    "precision: {fp8: {recipe: mxfp8, param_gather: true}}\n"
                                                    "checkpoint: {async_save: true}\n"
                                                    "offload: {policy: chunked, chunk_numel: 1e9}\n")
                              .string();
  const Outcome broken = run_ebb("check " + bad);
  CHECK(broken.code == 2);
  CHECK(broken.err == "");
  CHECK(holds(broken.out, "bad.yaml:4:27: batch.global: 4 is not a multiple of"));
  CHECK(holds(broken.out, "bad.yaml:6:26: checkpoint.async_save: chunked does not go with asynchronous saves; the "));
  CHECK(holds(broken.out, "pull request 6544"));
  CHECK(holds(broken.out, "4 violations of "));
  std::istringstream refused(run_ebb("plan " + bad).err.substr(std::string("ebb: ").size()));
  int lines = 0;
  for (std::string line; std::getline(refused, line); ++lines) CHECK(holds(broken.out, line + "\n    rule "));
  CHECK(lines == 4);

  const auto json = nlohmann::json::parse(run_ebb("check " + bad + " --json").out);
  CHECK(json.at("violations").size() == 4);
  CHECK(json.at("violations")[0].at("rule") == "batch-divides");
  CHECK(json.at("policy") == "chunked");
  CHECK(json.at("policies").empty());
}

// What the change for chunked offload and its merged variant reject when arguments are validated (Megatron-LM pull
// request 6544, and dev since #6244), each alone: with the policy in the job, plan and check refuse it.
TEST_CASE("every combination that Megatron rejects is rejected with exit 2") {
  struct Rejected {
    const char* lines;
    std::vector<std::string> policies;
    const char* key;
  };
  const std::vector<std::string> all = {"full-reload", "chunked", "windowed"};
  const std::vector<std::string> reload = {"full-reload", "chunked"};
  const std::vector<Rejected> list = {
      {"optimizer: {kind: sgd}\n", all, "optimizer.kind"},
      {"optimizer: {distributed: false}\nparallel: {gpus: 1, overlap_param_gather: false}\n", reload,
       "optimizer.distributed"},
      {"megatron: {optimizer_cpu_offload: true}\n", all, "megatron.optimizer_cpu_offload"},
      {"checkpoint: {async_save: true}\n", all, "checkpoint.async_save"},
      {"megatron: {optimizer_cuda_graph: true}\n", all, "megatron.optimizer_cuda_graph"},
      {"megatron: {cuda_graphs: full_iteration}\n", all, "megatron.cuda_graphs"},
      {"megatron: {rl_offload_optimizer: true}\n", reload, "megatron.rl_offload_optimizer"},
      {"megatron: {fsdp: true}\ncheckpoint: {format: fsdp_dtensor}\n", all, "megatron.fsdp"},
      {"precision: {exp_avg: fp16, fp8: {recipe: blockwise}}\n", all, "precision.exp_avg"},
      {"precision: {exp_avg_sq: fp8, fp8: {recipe: blockwise}}\n", all, "precision.exp_avg_sq"},
      {"precision: {exp_avg: bf16, exp_avg_sq: bf16}\n", reload, "precision.exp_avg"},
      {"precision: {precision_aware: true, fp8: {recipe: delayed}}\n", reload, "precision.precision_aware"},
      {"precision: {master: fp16}\n", all, "precision.master"},
      {"precision: {fp4: {recipe: nvfp4, param_gather: true}}\ncluster: hgx-b200\n",
       {"chunked"},
       "precision.fp4.param_gather"},
      {"precision: {fp8: {recipe: mxfp8, param_gather: true}}\ncluster: hgx-b200\n",
       {"chunked"},
       "precision.fp8.reuse_grad_buffer"},
      {"checkpoint: {format: torch}\n", {"windowed"}, "checkpoint.format"},
      {"checkpoint: {format: torch, save_optimizer: false, start: resume}\n", {"windowed"}, "checkpoint.format"},
  };
  for (const Rejected& rejected : list)
    for (const std::string& policy : rejected.policies) {
      std::string text = rejected.lines;
      text += "model: megatron-1.8b\nbatch: {global: 4, sequence: 2048}\noffload: {policy: " + policy + "}\n";
      for (const char* line : {"cluster: h200-1gpu\n", "parallel: {gpus: 1}\n"})
        if (!holds(text, std::string(line, std::string(line).find(':') + 1))) text += line;
      INFO(text);
      const std::string job = write_job("rejected.yaml", text).string();
      check_rejected("plan " + job, 2, std::string(rejected.key) + ": ");
      const Outcome check = run_ebb("check " + job);
      CHECK(check.code == 2);
      CHECK(holds(check.out, "\n1 violation of "));
    }
}

TEST_CASE("check: no job of the library breaks a rule, and its JSON is repeatable") {
  for (const std::string& job : library_jobs()) {
    const Outcome outcome = run_ebb("check " + job + " --json");
    INFO(job << outcome.out);
    CHECK(outcome.code == 0);
    const auto json = nlohmann::json::parse(outcome.out);
    CHECK(json.at("violations").empty());
    CHECK(json.at("policies").size() == (json.at("policy").is_null() ? 6 : 0));
    if (json.at("policy").is_null()) CHECK(json.at("policies")[0].at("ruled_out") == false);  // resident
    CHECK(run_ebb("check " + job + " --json").out == outcome.out);
  }
}

TEST_CASE("check: a policy of the command line is judged, an open one only ruled out") {
  const std::string job = write_job("graphs.yaml",
                                    "model: megatron-1.8b\ncluster: h200-1gpu\nparallel: {gpus: 1}\n"
                                    "batch: {global: 4, sequence: 2048}\nmegatron: {optimizer_cuda_graph: true}\n")
                              .string();
  const Outcome open = run_ebb("check " + job);
  CHECK(open.code == 0);
  CHECK(holds(open.out, "policies that nothing stands against: resident, cpu-adam, pipelined\n"));
  CHECK(
      holds(open.out, "windowed is ruled out: " + job + ":5:34: megatron.optimizer_cuda_graph: windowed does not go"));
  for (const char* policy : {"full-reload", "chunked", "windowed"}) {
    INFO(policy);
    CHECK(run_ebb("check " + job + " --policy " + policy).code == 2);
    check_rejected("simulate " + job + " --chunk-numel 1e9 --policy chunked", 2, "replays on pointers");
  }
  CHECK(run_ebb("check " + job + " --policy cpu-adam --fraction 0.5").code == 0);
  CHECK(run_ebb("check " + job + " --policy cpu-adam --fraction 1.5").code == 2);
  CHECK(run_ebb("check " + kMeasured + " --policy chunked --megatron pr6544").code == 0);
  CHECK(run_ebb("check " + kMeasured + " --policy chunked --megatron main").code == 2);
  check_rejected("check " + kMeasured + " --policy chunkd", 2, "did you mean");
  check_rejected("check no/such/job.yaml", 2, "no/such/job.yaml");
}

TEST_CASE("a machine that fails: exit 3, one message") {
  check_rejected("plan " + kMeasured + " -o /no/such/directory/plan.json", 3, "/no/such/directory/plan.json");
  check_rejected("plan " + kMeasured + " -o " + scratch().string(), 3, "cannot write");
  check_rejected("plan " + kMeasured + " >&-", 3, "standard output");
  if (fs::exists("/dev/full")) check_rejected("plan " + kMeasured + " >/dev/full", 3, "standard output");
}

TEST_CASE("a closed pipe is a message and exit 3, not a signal") {
  const std::string code = (scratch() / "code").string();
  const Outcome outcome = run_ebb("--version >/dev/null; { sleep 0.3; '" EBB_BINARY "' plan " + kMeasured +
                                  "; echo $? >" + code + "; } | true");
  CHECK(contents(code) == "3\n");
  CHECK(holds(outcome.err, "ebb: cannot write to standard output"));
}

TEST_CASE("a batch beyond all time is bad input, not a failed assertion") {
  const fs::path job = scratch() / "forever.yaml";
  std::ofstream(job) << "model: llama3-8b\ncluster: hgx-h200\nparallel: {gpus: 8}\n"
                        "batch: {micro: 1, global: 1000000000, sequence: 8192}\n";
  const Outcome outcome = run_ebb("plan " + job.string());
  CHECK(outcome.code == 2);
  CHECK(holds(outcome.err, "more than 11 days"));
}

TEST_CASE(
    "Megatron's own recipe with graphs and expandable segments passes, and a fixed policy is not called fastest") {
  const fs::path job = scratch() / "recipe.yaml";
  std::ofstream(job) << run_ebb(
                            "import megatron tests/data/megatron/scripts/deepseek_v3_gb200.yaml --gpus 256 "
                            "--cluster gb200-nvl72")
                            .out;
  const Outcome check = run_ebb("check " + job.string());
  INFO(check.out);
  CHECK(check.code == 0);
  const Outcome plan = run_ebb("plan " + job.string());
  CHECK(!holds(plan.out, "fastest schedule that you can deploy"));
}

TEST_CASE("a score without a modelled case has no errors, not errors of 0") {
  const fs::path file = scratch() / "none.json";
  std::ofstream(file) << R"({"cases": []})";
  const Outcome outcome = run_ebb("score " + file.string() + " --json");
  REQUIRE(outcome.code == 0);
  CHECK(nlohmann::json::parse(outcome.out).at("peak").at("median").is_null());
}
