// The `ebb` program itself, run as a user runs it: exit codes, what goes to which stream, and the JSON documents.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "models/library.hpp"
#include "models/plan_json.hpp"
#include "planner/verify.hpp"
#include "tests/catch.hpp"

using nlohmann::json;

namespace {

namespace fs = std::filesystem;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

std::string contents(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

fs::path scratch() {
  static const fs::path directory = [] {
    std::string name = (fs::temp_directory_path() / "ebb-cli-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    return fs::path(name);
  }();
  return directory;
}

/// Runs `ebb ARGUMENTS` in the source tree, as a shell would.
Ran run(const std::string& arguments, const std::string& environment = "") {
  const fs::path out = scratch() / "out";
  const fs::path err = scratch() / "err";
  const std::string command = "cd '" EBB_SOURCE_DIR "' && " + environment + " '" EBB_PROGRAM "' " + arguments + " >'" +
                              out.string() + "' 2>'" + err.string() + "' </dev/null";
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), contents(out), contents(err)};
}

fs::path write_job(const std::string& text) {
  const fs::path path = scratch() / "job.yaml";
  std::ofstream(path) << text;
  return path;
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

constexpr const char* kSmall = "models/jobs/measured-1.8b-1xh200.yaml";

const std::set<std::string> kCandidateFields = {"policy",
                                                "chunk_numel",
                                                "chunk_size_mb",
                                                "fraction",
                                                "slots",
                                                "flags",
                                                "requires",
                                                "device_peak_bytes",
                                                "device_reserved_bytes",
                                                "optimizer_seconds",
                                                "host_pinned_bytes_per_rank",
                                                "host_pinned_bytes_per_host",
                                                "step_seconds",
                                                "reason"};

void check_fields(const json& candidate) {
  for (const std::string& field : kCandidateFields) {
    INFO(field);
    CHECK(candidate.contains(field));
  }
  CHECK(candidate.at("device_peak_bytes").is_number_integer());
  CHECK(candidate.at("step_seconds").is_number());
}

}  // namespace

TEST_CASE("plan answers every job of the library, twice the same, with 1e9 among the rows") {
  for (const std::string& name : ebb::library_names(ebb::Library::jobs)) {
    INFO(name);
    const std::string command = "plan models/jobs/" + name + ".yaml --json";
    const Ran ran = run(command);
    REQUIRE((ran.code == 0 || ran.code == 1));
    CHECK(ran.err.empty());
    CHECK(run(command).out == ran.out);

    const json document = json::parse(ran.out);
    CHECK(document.at("job") == name);
    CHECK(document.contains("ebb_version"));
    CHECK(document.at("recommendation").is_null() == (ran.code == 1));
    if (ran.code == 0) check_fields(document.at("recommendation"));
    bool production_size = false;
    std::size_t rows = 0;
    for (const json& candidate : document.at("candidates")) {
      check_fields(candidate);
      production_size |= candidate.at("policy") == "chunked" && candidate.at("chunk_numel") == 1'000'000'000;
      rows += candidate.at("requires") == "ebb" ? 0 : 1;
    }
    CHECK(production_size);
    CHECK(rows <= 8);
  }
}

TEST_CASE("the answer on paper opens with the flags and marks the row they stand for") {
  const Ran ran = run("plan models/jobs/nemotron4-15b-1xh200.yaml");
  REQUIRE(ran.code == 0);
  CHECK(ran.out.rfind("--offload-optimizer-states --offload-optimizer-states-chunk-numel ", 0) == 0);
  CHECK(ran.out.find("\n*  chunked") != std::string::npos);
  CHECK(ran.out.find('\x1b') == std::string::npos);  // no colour into a file
}

TEST_CASE("nothing feasible is exit 1, with the shortfall and a cure on stdout") {
  const Ran ran = run(std::string("plan ") + kSmall + " --budget 8GiB");
  CHECK(ran.code == 1);
  CHECK(ran.out.find("nothing fits") == 0);
  CHECK(ran.out.find("would cure it: ") != std::string::npos);
  CHECK(ran.err.empty());
}

TEST_CASE("simulate's phases add up to the step, and its fields stand at the top") {
  const Ran ran = run(std::string("simulate ") + kSmall + " --policy chunked --chunk-numel 1e9 --json");
  REQUIRE(ran.code == 0);
  const json document = json::parse(ran.out);
  check_fields(document);
  CHECK(document.at("chunk_numel") == 1'000'000'000);
  CHECK(document.at("slots").is_null());
  double sum = 0;
  std::int64_t peak = 0;
  for (const json& phase : document.at("phases")) {
    sum += phase.at("seconds").get<double>();
    peak = std::max(peak, phase.at("device_peak_bytes").get<std::int64_t>());
    if (phase.at("name") == "step") CHECK(phase.at("seconds") == document.at("optimizer_seconds"));
  }
  CHECK(sum == Approx(document.at("step_seconds").get<double>()).epsilon(1e-9));
  CHECK(peak == document.at("device_peak_bytes"));
}

TEST_CASE("layout prints Megatron-LM's shards, buckets and chunks") {
  const Ran ran = run(std::string("layout ") + kSmall + " --rank 0 --policy windowed --chunk-size-mb 512 --json");
  REQUIRE(ran.code == 0);
  const json document = json::parse(ran.out);
  CHECK(document.at("shards").size() == 147);
  CHECK(document.at("shards")[0].at("name") == "output_layer.weight");
  CHECK(document.at("shards")[0].at("numel") == 103'022'592);
  CHECK(document.at("buckets").size() == 1);
  CHECK(document.at("buckets")[0].at("numel") == 1'816'758'272);
  CHECK(document.at("chunks").size() == 27);
}

TEST_CASE("-o writes a plan that loads and has no hazards") {
  const fs::path file = scratch() / "plan.json";
  REQUIRE(run(std::string("plan models/jobs/nemotron4-15b-1xh200.yaml -o '") + file.string() + "'").code == 0);
  const ebb::Plan recommended = ebb::plan_from_json(contents(file), file.string());
  CHECK(recommended.candidate.policy == ebb::Policy::chunked);
  CHECK(ebb::verify(recommended).empty());
  REQUIRE(run(std::string("simulate ") + kSmall + " --policy pipelined --chunk-numel 16777216 --slots 3 -o '" +
              file.string() + "'")
              .code == 0);
  CHECK(ebb::plan_from_json(contents(file), file.string()).candidate.slots == 3);
}

TEST_CASE("bad input ends with exit 2 and one line that names place and cure, nothing on stdout") {
  const std::string tail = "cluster: hgx-h200\nparallel: {gpus: 8}\nbatch: {micro: 1, global: 64, sequence: 8192}\n";
  const auto job = [&](const std::string& text) { return "plan '" + write_job(text).string() + "'"; };
  struct Case {
    std::string arguments;
    std::string names;
  };
  const auto expect = [](const Case& bad) {
    INFO(bad.arguments);
    const Ran ran = run(bad.arguments);
    CHECK(ran.code == 2);
    CHECK(ran.out.empty());
    CHECK(lines(ran.err) == 1);
    INFO(ran.err);
    CHECK(ran.err.find(bad.names) != std::string::npos);
  };
  for (const Case& bad : std::vector<Case>{
           {"plan no-such-job.yaml", "no such file"},
           {"plan models", "models"},
           {"plan", "JOB"},
           {"frobnicate", "frobnicate"},
           {std::string("plan ") + kSmall + " --budget -5GiB", "--budget"},
           {std::string("plan ") + kSmall + " --budget nan", "--budget"},
           {std::string("plan ") + kSmall + " --megatron next", "--megatron"},
           {std::string("simulate ") + kSmall + " --policy chnked", "did you mean \"chunked\""},
           {std::string("simulate ") + kSmall + " --policy chunked", "chunk-numel"},
           {std::string("simulate ") + kSmall + " --policy chunked --chunk-numel -5", "--chunk-numel"},
           {std::string("simulate ") + kSmall + " --policy resident --slots 3", "--slots"},
           {std::string("layout ") + kSmall + " --rank 1", "--rank"},
       })
    expect(bad);
  expect({job("model: llama3-8c\n" + tail), "job.yaml:1:8: "});
  expect({job("model: llama3-8b\nclutser: hgx-h200\n" + tail), "did you mean \"cluster\""});
  expect({job("model: llama3-8b\nbudget: {device: -1GiB}\n" + tail), "job.yaml:2:18: "});
  expect({job("model: llama3-8b\nparallel: {gpus: 8, tensor: 3}\ncluster: hgx-h200\n"
              "batch: {micro: 1, global: 64, sequence: 8192}\n"),
          "job.yaml:2:"});
}

TEST_CASE("a failing environment is exit 3") {
  CHECK(run(std::string("plan ") + kSmall + " --json -o /no/such/directory/plan.json").code == 3);
  CHECK(run(std::string("plan ") + kSmall + " >/dev/full").code == 3);
}

TEST_CASE("every example of the help texts runs") {
  std::size_t examples = 0;
  for (const std::string command : {"", "plan", "simulate", "layout"}) {
    const Ran help = run(command + " --help");
    REQUIRE(help.code == 0);
    std::istringstream text(help.out);
    for (std::string line; std::getline(text, line);) {
      const std::size_t at = line.find("ebb ");
      if (at == std::string::npos || line.find("models/jobs/") == std::string::npos) continue;
      INFO(line);
      CHECK(run(line.substr(at + 4)).code <= 1);
      ++examples;
    }
  }
  CHECK(examples >= 6);
}
