// `ebb doctor` over made-up hosts (tests/data/hosts): exit codes, and a screen's worth of text.
#include <nlohmann/json.hpp>

#include "tests/cli/run_ebb.hpp"

using namespace ebb::test;

namespace {

const std::string kHosts = "tests/data/hosts/";

}  // namespace

TEST_CASE("doctor: a host in general fits a terminal of 24 lines and 100 columns") {
  for (const char* host : {"hgx-h200", "container-64g", "wsl2", "low-memlock"}) {
    const Outcome outcome = run_ebb("doctor --checkpoint /tmp --root " + kHosts + host);
    CAPTURE(host, outcome.out);
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') <= 24);
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
  }
  CHECK(run_ebb("doctor").code == 0);  // this machine, whatever it is
}

TEST_CASE("doctor: exit 1 where something stands against the job's plan") {
  const std::string job = "doctor models/jobs/llama3-8b-hgx-h200.yaml --json --root " + kHosts;
  const Outcome fits = run_ebb(job + "hgx-h200");
  CHECK(fits.code == 0);
  CHECK(nlohmann::json::parse(fits.out)["stands_against_plan"] == false);
  const Outcome does_not = run_ebb(job + "container-64g");
  CHECK(does_not.code == 1);
  const auto json = nlohmann::json::parse(does_not.out);
  CHECK(json["stands_against_plan"] == true);
  CHECK(json["plan"]["ranks_per_host"] == 8);
  std::vector<std::string> problems;
  for (const auto& finding : json["findings"])
    if (finding["verdict"] == "problem") problems.push_back(finding["topic"]);
  CHECK(problems == std::vector<std::string>{"cgroup", "gpus", "/dev/shm"});
  std::string text = text_of_file(EBB_SOURCE_DIR "/models/jobs/llama3-8b-hgx-h200.yaml");
  text.replace(text.find("139GiB"), 6, "20GiB");
  const auto tight = write_job("tight.yaml", text);
  const Outcome none = run_ebb("doctor " + tight.string() + " --json --root " + kHosts + "hgx-h200");
  CHECK(none.code == 1);
  CHECK(nlohmann::json::parse(none.out)["plan"]["policy"].is_null());  // no plan fits
  check_rejected("doctor --set parallel.gpus=1", 2, "there is no job to change");
}
