// `--html` and `ebb report` from outside.
#include <nlohmann/json.hpp>

#include "tests/cli/run_ebb.hpp"

using namespace ebb::test;

namespace {

const std::string kRun =
    "tests/data/replay/h200-2026-11-30/measured-1.8b-1xh200-chunked-chunk-numel-400000000.measured.json";

std::string path(const char* name) { return (scratch() / name).string(); }

std::string with_apostrophes(std::string text) {
  for (std::size_t at = text.find("&#39;"); at != std::string::npos; at = text.find("&#39;")) text.replace(at, 5, "'");
  return text;
}

/// The command that a page says it comes from, as a shell reads it.
std::string command_of(const std::string& page) {
  const std::string before = "aria-label=\"Command\"><code>";
  const std::size_t begin = page.find(before) + before.size();
  return with_apostrophes(page.substr(begin, page.find("</code>", begin) - begin));
}

}  // namespace

TEST_CASE("plan --html leaves stdout alone, and the page's own command writes the page again") {
  const std::string arguments = "plan " + kMeasured + " --budget 22GiB --measured " + kRun;
  const Outcome plain = run_ebb("plan " + kMeasured + " --budget 22GiB");
  const Outcome with = run_ebb(arguments + " --html '" + path("a page.html") + "'");
  REQUIRE(with.code == 0);
  CHECK(with.out == plain.out);
  CHECK(with.err == plain.err);
  const std::string page = text_of_file(path("a page.html"));
  CHECK(holds(page, "How far the prediction was off"));
  const std::string command = command_of(page);
  REQUIRE(command.rfind("ebb plan ", 0) == 0);
  fs::remove(path("a page.html"));
  REQUIRE(run_ebb(command.substr(4)).code == 0);
  CHECK(text_of_file(path("a page.html")) == page);
}

TEST_CASE("where nothing fits, the page says so and the exit is 1") {
  REQUIRE(run_ebb("plan " + kMeasured + " --budget 2GiB --html " + path("nothing.html")).code == 1);
  const std::string page = text_of_file(path("nothing.html"));
  CHECK(holds(page, "Nothing fits."));
  CHECK_FALSE(holds(page, "class=\"mark\">recommended"));
}

TEST_CASE("simulate --html shows the candidate that was asked for") {
  REQUIRE(run_ebb("simulate " + kMeasured + " --policy chunked --chunk-numel 4e8 --html " + path("one.html")).code ==
          0);
  CHECK(holds(text_of_file(path("one.html")), "Simulated: <strong>chunked 400,000,000</strong>"));
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
  const std::string page = text_of_file(path("report.html"));
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
  const std::string alone = text_of_file(path("diff.html"));
  REQUIRE(run_ebb("report " + path("pr.json") + " " + kRun + " -o " + path("both.html")).code == 0);
  const std::string both = text_of_file(path("both.html"));
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

namespace {

/// What `ebb ARGUMENTS --json` prints, in a file.
std::string document(const char* name, const std::string& arguments) {
  const Outcome outcome = run_ebb(arguments + " --json");
  REQUIRE(outcome.code <= 1);
  std::ofstream(path(name)) << outcome.out;
  return path(name);
}

/// `report` refuses `text` for a reason at `place`.
void check_refused(const nlohmann::ordered_json& json, const std::string& place) {
  std::ofstream(path("refused.json")) << json;
  const Outcome outcome = run_ebb("report " + path("refused.json") + " -o " + path("x.html"));
  INFO(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(holds(outcome.err, "refused.json: " + place + ": "));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("report refuses figures that no job has, and documents of another version") {
  const auto plan = nlohmann::ordered_json::parse(run_ebb("plan " + kMeasured + " --json").out);
  const auto changed = [&plan](const char* pointer, const nlohmann::ordered_json& value) {
    auto json = plan;
    json[nlohmann::ordered_json::json_pointer(pointer)] = value;
    return json;
  };
  check_refused(changed("/candidates/0/device_peak_bytes", -1), "candidates[0].device_peak_bytes");
  check_refused(changed("/candidates/0/device_peak_bytes", std::int64_t{1} << 62), "candidates[0].device_peak_bytes");
  check_refused(changed("/candidates/1/step_seconds", -0.5), "candidates[1].step_seconds");
  check_refused(changed("/candidates/1/step_seconds", 1e300), "candidates[1].step_seconds");
  check_refused(changed("/device_budget_bytes", -5), "device_budget_bytes");
  check_refused(changed("/gpus", 0), "gpus");
  check_refused(changed("/version", 2), "version");
  check_refused(changed("/format", "ebb-answer-doctor"), "format");
  auto simulated = nlohmann::ordered_json::parse(run_ebb("simulate " + kMeasured + " --policy resident --json").out);
  simulated["phases"][2]["seconds"] = -1;
  check_refused(simulated, "phases[2].seconds");
}

TEST_CASE("report refuses a second answer to one question, and a second job by one name") {
  const std::string plan = document("twice.json", "plan " + kMeasured);
  check_rejected("report " + plan + " " + plan + " -o " + path("x.html"), 2,
                 plan + ": a plan of measured-1.8b-1xh200 is there already: " + plan);
  auto elsewhere = nlohmann::ordered_json::parse(run_ebb("simulate " + kMeasured + " --policy resident --json").out);
  elsewhere["cluster"] = "hgx-h100";
  const std::string other = path("elsewhere.json");
  std::ofstream(other) << elsewhere;
  check_rejected("report " + other + " " + plan + " -o " + path("x.html"), 2, other + ": its measured-1.8b-1xh200 is ");
  CHECK_FALSE(fs::exists(path("x.html")));
}

TEST_CASE("report shows what fit, sweep and explain found, in tables, in a file that can be sent") {
  const std::string fit = document("fit.json", "fit " + kMeasured + " --max sequence --budget 22GiB");
  const std::string explain = document("explain.json", "explain " + kMeasured + " --budget 22GiB");
  const std::string phase = document("phase.json", "explain " + kMeasured + " --budget 22GiB --phase step");
  const std::string sweep = document("sweep.json", "sweep " + kMeasured + " --set batch.sequence=1024,4096,1048576");
  REQUIRE(run_ebb("report " + fit + " " + explain + " " + phase + " " + sweep + " -o " + path("found.html")).code == 0);
  const std::string page = text_of_file(path("found.html"));
  const auto of_fit = nlohmann::json::parse(text_of_file(fit));
  const auto of_explain = nlohmann::json::parse(text_of_file(explain)).at("explanation");
  const auto of_sweep = nlohmann::json::parse(text_of_file(sweep));
  std::string longest = std::to_string(of_fit.at("limits").at(0).at("fits").at("value").get<std::int64_t>());
  for (std::size_t at = longest.size(); at > 3; at -= 3) longest.insert(at - 3, ",");
  CHECK(holds(page, ">" + longest + "</th>"));
  CHECK(holds(page, of_explain.at("bottleneck").at("sentence").get<std::string>().substr(0, 20)));
  for (const auto& segment : of_explain.at("segments")) {
    const std::string what = segment.at("what").get<std::string>();
    CHECK(holds(page, ">" + what.substr(0, what.find('\''))));
  }
  CHECK(holds(page, "What is alive at the peak of step"));
  for (const auto& row : of_sweep.at("rows"))
    CHECK(holds(page, "<th scope=\"row\">" + row.at("values").at(0).get<std::string>() + "</th>"));
  // Thousands of rows: the page says how many it leaves out.
  auto many = of_sweep;
  while (many["rows"].size() < 4096) many["rows"].push_back(of_sweep.at("rows").at(many["rows"].size() % 3));
  std::ofstream(path("many.json")) << many;
  REQUIRE(run_ebb("report " + path("many.json") + " " + explain + " -o " + path("many.html")).code == 0);
  const std::string large = text_of_file(path("many.html"));
  CHECK(large.size() < 1'500'000);
  CHECK(holds(large, "the document has all 4096."));
  CHECK(count(large, "<th scope=\"row\">1024</th>") == 500);
}

TEST_CASE("a page of one policy at its worst says what was assumed, and its own command writes it again") {
  const std::string arguments = "simulate " + kMeasured + " --policy chunked --chunk-numel 4e8 --robust";
  REQUIRE(run_ebb(arguments + " --html '" + path("worst.html") + "'").code == 0);
  const std::string page = text_of_file(path("worst.html"));
  CHECK(holds(page, "assumed at its worst"));
  const auto document = nlohmann::json::parse(run_ebb(arguments + " --json").out);
  REQUIRE_FALSE(document.at("worst_case").empty());
  for (const std::string assumption : document.at("worst_case")) CHECK(holds(with_apostrophes(page), assumption));
  const std::string command = command_of(page);
  fs::remove(path("worst.html"));
  REQUIRE(run_ebb(command.substr(4)).code == 0);
  CHECK(text_of_file(path("worst.html")) == page);
}

TEST_CASE("report refuses a plan by its name, and says what to give instead") {
  REQUIRE(run_ebb("simulate " + kMeasured + " --policy resident -o " + path("plan-not-answer.json")).code == 0);
  check_rejected("report " + path("plan-not-answer.json") + " -o " + path("none.html"), 2, "this is a plan; give its");
  std::ofstream(path("odd.json")) << R"({"format": "odd"})";
  check_rejected("report " + path("odd.json") + " -o " + path("none.html"), 2, "a page does not show \"odd\"");
}

TEST_CASE("a page of Ebb's own schedule says that there is no flag, one of resident that none is needed") {
  const auto page = [](const std::string& policy) {
    const std::string file = path((policy + ".html").c_str());
    REQUIRE(run_ebb("simulate " + kMeasured + " --policy " + policy + " --html " + file).code == 0);
    return text_of_file(file);
  };
  CHECK(holds(page("tidal"), "<strong>There is no flag for it.</strong>"));
  CHECK(holds(page("resident"), "<strong>No flag is needed.</strong>"));
}
