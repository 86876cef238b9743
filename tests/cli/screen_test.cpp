// What a terminal of 24 lines and 100 columns shows: the plain text of the commands over the whole job library.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/wrap.hpp"
#include "tests/cli/run_ebb.hpp"

using namespace ebb;
using namespace ebb::test;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void check_width(const std::string& command) {
  const Outcome outcome = run_ebb(command);
  CHECK(outcome.code <= 1);
  CHECK_FALSE(outcome.out.empty());
  for (const std::string& line : lines_of(outcome.out)) {
    INFO(command << "\n" << line);
    CHECK(reports::width_of(line) <= 100);
  }
}

/// A shell's reading of broken lines.
std::string joined_command(std::string text) {
  for (std::size_t at = text.find(" \\\n  "); at != std::string::npos; at = text.find(" \\\n  "))
    text.replace(at, 5, " ");
  return text.substr(0, text.find('\n'));
}

}  // namespace

TEST_CASE("the answer of every job of the library is one screen, whether it fits or not") {
  for (const std::string& job : library_jobs())
    for (const std::string budget : {"", " --budget 20GiB", " --budget 3GiB"}) {
      const Outcome outcome = run_ebb(fmt::format("plan {}{}", job, budget));
      INFO(job << budget << "\n" << outcome.out);
      CHECK(outcome.code == (outcome.out.rfind("nothing fits", 0) == 0 ? 1 : 0));
      const std::vector<std::string> lines = lines_of(outcome.out);
      CHECK(lines.size() <= 24);
      for (const std::string& line : lines) {
        INFO(line);
        CHECK(reports::width_of(line) <= 100);
      }
    }
}

TEST_CASE("what the screen says to paste is what the JSON says, and so is every form") {
  for (const std::string& job : library_jobs()) {
    INFO(job);
    const auto pick = nlohmann::json::parse(run_ebb("plan " + job + " --json").out).at("recommendation");
    if (pick.is_null()) continue;
    std::string flags;
    for (const std::string flag : pick.at("flags")) flags += (flags.empty() ? "" : " ") + flag;
    CHECK(joined_command(run_ebb("plan " + job).out) == (flags.empty() ? "no flag" : flags));
  }
  const std::string job = "models/jobs/llama3-8b-hgx-h200.yaml";
  const auto forms = nlohmann::json::parse(run_ebb("plan " + job + " --json").out).at("recommendation").at("forms");
  REQUIRE(forms.size() == 4);
  for (const auto& [name, form] : forms.items()) {
    const Outcome outcome = run_ebb(fmt::format("plan {} --format {}", job, name));
    CHECK(outcome.code == 0);
    const bool arguments = name == "bridge" || name == "verl";  // lines of one command
    std::string lines;
    for (const std::string line : form.at("lines")) lines += (lines.empty() ? "" : arguments ? " \\\n" : "\n") + line;
    lines += "\n";
    CHECK(outcome.out.rfind(lines, 0) == 0);
    for (const std::string& rest : lines_of(outcome.out.substr(lines.size()))) CHECK(rest.rfind("# ", 0) == 0);
  }
  check_rejected("plan " + job + " --format toml", 2, "unknown value \"toml\"");
  check_rejected("plan " + job + " --format yaml --json", 2, "--format: a JSON document holds every form");
}

TEST_CASE("--all has the figures that the screen leaves out") {
  const Outcome outcome = run_ebb("plan " + kMeasured + " --budget 22GiB --all");
  CHECK(outcome.code == 0);
  for (const char* part : {"pinned/rank", "reserved ~", "optimizer", "With Ebb's own runtime"})
    CHECK(holds(outcome.out, part));
}

// Not `check`: its lines begin with file:line:column, for editors, and stay whole.
TEST_CASE("simulate, explain and layout keep to 100 columns") {
  for (const std::string& job : library_jobs()) check_width("simulate " + job + " --policy chunked --chunk-numel 1e9");
  for (const char* job :
       {"measured-1.8b-1xh200", "llama3-8b-hgx-h200", "deepseek-v3-2048xh200", "gpt3-175b-dgx-a100"}) {
    check_width(std::string("explain ") + job);
    check_width(std::string("explain ") + job + " --phase step");
    check_width(std::string("layout ") + job + " --rank 0");
  }
}

TEST_CASE("an explanation covers the step and answers the same twice") {
  const std::string command = "explain measured-1.8b-1xh200 --budget 22GiB --json";
  const Outcome once = run_ebb(command);
  CHECK(once.code == 0);
  CHECK(once.err == "");
  CHECK(run_ebb(command).out == once.out);
  const auto json = nlohmann::json::parse(once.out);
  const auto& e = json.at("explanation");
  double seconds = 0;
  double percent = 0;
  for (const auto& segment : e.at("segments")) {
    seconds += segment.at("seconds").get<double>();
    percent += segment.at("percent").get<double>();
  }
  CHECK(seconds == Approx(json.at("step_seconds").get<double>()));
  CHECK(percent == Approx(100));
  CHECK(e.at("what_ifs").size() >= 4);
  CHECK(nlohmann::json::parse(run_ebb("explain measured-1.8b-1xh200 --phase step --json").out)
            .at("explanation")
            .is_null());
}

TEST_CASE("a sweep in a pipe has every reason whole, one line a row") {
  const std::string sweep = "sweep " + kMeasured + " --set parallel.tensor=1,3";
  const auto rows = nlohmann::json::parse(run_ebb(sweep + " --json").out).at("rows");
  const std::vector<std::string> lines = lines_of(run_ebb(sweep).out);
  REQUIRE(lines.size() == rows.size() + 1);
  const std::string obstacle = rows.at(1).at("obstacle").get<std::string>();
  REQUIRE(obstacle.size() > 60);
  const std::string first = obstacle.substr(0, obstacle.find('\n'));
  CHECK(holds(lines[2], first.substr(first.size() - 40)));
}

TEST_CASE("a sweep takes each key once, and its configuration is printed where it is one job") {
  check_rejected("sweep " + kMeasured + " --set batch.micro=1 --set batch.micro=2", 2,
                 "--set batch.micro: this key has its values already");
  check_rejected("sweep " + kMeasured + " --set batch.micro=1,2 --print-config", 2, "a sweep is of 2 jobs");
  const std::string one = run_ebb("sweep " + kMeasured + " --set batch.sequence=1024 --print-config").out;
  CHECK(one == run_ebb("plan " + kMeasured + " --set batch.sequence=1024 --print-config").out);
}

TEST_CASE("a score keeps to 100 columns, each case's figures below its name") {
  check_width("score tests/data/megatron/recorded.json");
}

TEST_CASE("the pieces that tidal leaves behind a step are one row, and explained as pieces") {
  const std::string job = "models/jobs/llama3-8b-hgx-h200.yaml --policy tidal";
  const auto simulated = nlohmann::json::parse(run_ebb("simulate " + job + " --json").out);
  std::int64_t sum = 0;
  int tails = 0;
  for (const auto& term : simulated.at("device_terms")) {
    sum += term.at("bytes").get<std::int64_t>();
    if (term.at("name") == "tail, 240 pieces") ++tails;
    CHECK_FALSE(term.at("name").get<std::string>().starts_with("tail "));
  }
  CHECK(tails == 1);
  CHECK(sum == simulated.at("device_between_steps_bytes"));
  // 240 pieces hold 1,003,782,656 elements of exp_avg, exp_avg_sq and master weight.
  const Outcome explained = run_ebb("explain " + job + " --phase step");
  CHECK(holds(explained.out, "240 pieces of 12 B x 4,194,304 elements"));
  CHECK(holds(explained.out, std::to_string(240LL * 12 * 4'194'304).insert(8, ",").insert(5, ",").insert(2, ",")));
}

// The least cap of this job: what forward and backward take without state, 21,053,853,696 bytes live on an H200, too.
TEST_CASE(
    "a cap below what a step takes is refused with exact bytes, no cap is no number, and the one in force is shown") {
  const std::string tidal = "simulate " + kMeasured + " --policy tidal";
  check_rejected(tidal + " --cap 0", 2, "--cap: 0 bytes are no cap");
  check_rejected(tidal + " --cap 21053853695", 2,
                 "a cap of 21053853695 bytes is below the 21053853696 bytes that rank 0 takes with one piece of state; "
                 "use 21053853696 or more");
  check_rejected("plan " + kMeasured + " --set offload.policy=tidal --set offload.cap=10GiB", 2,
                 "--set offload.cap=10GiB: a cap of 10.00 GiB is below the 19.61 GiB");
  for (const std::string cap : {"", " --cap 21053853696", " --cap 30GiB"}) {
    const auto answer = nlohmann::json::parse(run_ebb(tidal + cap + " --json").out);
    const std::int64_t in_force = answer.at("live_cap_bytes");
    CHECK(in_force == (cap == " --cap 30GiB" ? 30LL << 30 : 21'053'853'696));
    // The account tensor by tensor rounds activations of its own.
    CHECK(answer.at("device_peak_bytes") < in_force + (4 << 20));
  }
}

TEST_CASE("where nothing fits, explain takes the policy that the job names, as plan does") {
  const std::string job = "models/jobs/llama3-8b-hgx-h200.yaml --set offload.policy=tidal --budget 130GiB";
  CHECK(holds(run_ebb("plan " + job).out, "nothing fits: the nearest is tidal"));
  CHECK(holds(run_ebb("explain " + job).out, "\ntidal 1048576 (nothing fits: this needs least)\n"));
}
