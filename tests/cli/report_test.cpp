// `--html` and `ebb report` from outside.
#include <nlohmann/json.hpp>

#include "tests/cli/run_ebb.hpp"

using namespace ebb::test;

namespace {

const std::string kRun =
    "tests/data/replay/h200-2026-11-30/measured-1.8b-1xh200-chunked-chunk-numel-400000000.measured.json";

std::string path(const char* name) { return (scratch() / name).string(); }

/// The command that a page says it comes from, as a shell reads it.
std::string command_of(const std::string& page) {
  const std::string before = "aria-label=\"Command\"><code>";
  const std::size_t begin = page.find(before) + before.size();
  std::string command = page.substr(begin, page.find("</code>", begin) - begin);
  for (std::size_t at = command.find("&#39;"); at != std::string::npos; at = command.find("&#39;"))
    command.replace(at, 5, "'");
  return command;
}

}  // namespace

TEST_CASE("plan --html leaves stdout alone, and the page's own command writes the page again") {
  const std::string arguments = "plan " + kMeasured + " --budget 22GiB --measured " + kRun;
  const Outcome plain = run_ebb("plan " + kMeasured + " --budget 22GiB");
  const Outcome with = run_ebb(arguments + " --html '" + path("a page.html") + "'");
  REQUIRE(with.code == 0);
  CHECK(with.out == plain.out);
  CHECK(with.err == plain.err);
  const std::string page = contents(path("a page.html"));
  CHECK(holds(page, "How far the prediction was off"));
  const std::string command = command_of(page);
  REQUIRE(command.rfind("ebb plan ", 0) == 0);
  fs::remove(path("a page.html"));
  REQUIRE(run_ebb(command.substr(4)).code == 0);
  CHECK(contents(path("a page.html")) == page);
}

TEST_CASE("where nothing fits, the page says so and the exit is 1") {
  REQUIRE(run_ebb("plan " + kMeasured + " --budget 2GiB --html " + path("nothing.html")).code == 1);
  const std::string page = contents(path("nothing.html"));
  CHECK(holds(page, "Nothing fits."));
  CHECK_FALSE(holds(page, "class=\"mark\">recommended"));
}

TEST_CASE("simulate --html shows the candidate that was asked for") {
  REQUIRE(run_ebb("simulate " + kMeasured + " --policy chunked --chunk-numel 4e8 --html " + path("one.html")).code ==
          0);
  CHECK(holds(contents(path("one.html")), "Simulated: <strong>chunked 400,000,000</strong>"));
}

TEST_CASE("a timeline that is of another job, or no run, is refused before anything is written") {
  const Outcome other =
      run_ebb("plan models/jobs/llama3-8b-hgx-h200.yaml --measured " + kRun + " --html " + path("no.html"));
  CHECK(other.code == 2);
  CHECK(holds(other.err, "another plan"));
  REQUIRE(run_ebb("simulate " + kMeasured + " --policy resident --timeline " + path("p.json")).code == 0);
  const Outcome prediction =
      run_ebb("plan " + kMeasured + " --measured " + path("p.json") + " --html " + path("no.html"));
  CHECK(prediction.code == 2);
  CHECK(holds(prediction.err, "a prediction, not a run"));
  CHECK_FALSE(fs::exists(path("no.html")));
}

TEST_CASE("report puts documents and timelines of one job together, in any order") {
  REQUIRE(run_ebb("simulate " + kMeasured + " --policy chunked --chunk-numel 4e8 --json --timeline " +
                  path("predicted.json") + " > " + path("simulate.json"))
              .code == 0);
  REQUIRE(run_ebb("plan " + kMeasured + " --json > " + path("plan.json")).code == 0);
  const std::string files = kRun + " " + path("predicted.json") + " " + path("simulate.json") + " " + path("plan.json");
  REQUIRE(run_ebb("report " + files + " -o " + path("report.html")).code == 0);
  const std::string page = contents(path("report.html"));
  CHECK(holds(page, "Use <strong>resident</strong>"));
  CHECK(holds(page, "Memory over the life of the job"));  // from simulate
  CHECK(holds(page, "By class of operation"));            // from the two timelines
  CHECK(page.find("<article class=\"job\"") == page.rfind("<article class=\"job\""));
}

TEST_CASE("report shows a comparison by itself with the same figures") {
  REQUIRE(run_ebb("simulate " + kMeasured + " --policy chunked --chunk-numel 4e8 --timeline " + path("pr.json")).code ==
          0);
  const Outcome diff = run_ebb("diff " + path("pr.json") + " " + kRun + " --json");
  std::ofstream(path("diff.json")) << diff.out;
  REQUIRE(run_ebb("report " + path("diff.json") + " -o " + path("diff.html")).code == 0);
  const std::string alone = contents(path("diff.html"));
  REQUIRE(run_ebb("report " + path("pr.json") + " " + kRun + " -o " + path("both.html")).code == 0);
  const std::string both = contents(path("both.html"));
  const auto table = [](const std::string& page) {
    const std::size_t begin = page.find("By class of operation");
    return page.substr(begin, page.find("</table>", begin) - begin);
  };
  CHECK(table(alone) == table(both));
  CHECK(holds(alone, nlohmann::json::parse(diff.out).at("verdict").get<std::string>()));
}

TEST_CASE("report names the file and the place of what it cannot show") {
  std::ofstream(path("other.json")) << "{\"candidates\": []}";
  const Outcome other = run_ebb("report " + path("other.json") + " -o " + path("x.html"));
  CHECK(other.code == 2);
  CHECK(holds(other.err, "other.json"));
  auto plan = nlohmann::ordered_json::parse(run_ebb("plan " + kMeasured + " --json").out);
  plan["candidates"][1]["step_seconds"] = "soon";
  std::ofstream(path("broken.json")) << plan;
  const Outcome broken = run_ebb("report " + path("broken.json") + " -o " + path("x.html"));
  CHECK(broken.code == 2);
  CHECK(holds(broken.err, "candidates[1].step_seconds"));
}
