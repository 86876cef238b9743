// Reports: JSON holds the agreed keys and nothing that varies; text puts the answer first and stays without colour when
// it must.
#include <nlohmann/json.hpp>

#include "reports/answer_json.hpp"
#include "reports/answer_text.hpp"
#include "reports/table.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::reports;

namespace {

Candidate chunked() {
  Candidate c;
  c.policy = "chunked";
  c.chunk_numel = Numel{400'000'000};
  c.flags = {"--offload-optimizer-states", "--offload-optimizer-states-chunk-numel", "400000000"};
  c.requirement = "pr6544";
  c.takers = "Megatron-LM with pull request 6544";
  c.deployable = c.feasible = true;
  c.device_peak = Bytes{21055805952};
  c.optimizer = {0.82};
  c.step = {1.34};
  c.reason = "it fits";
  return c;
}

PlanReport plan() {
  PlanReport report;
  report.header.job = "measured";
  report.candidates = {chunked()};
  report.recommended = 0;
  return report;
}

}  // namespace

TEST_CASE("a plan's JSON has the agreed keys, null where a parameter is unused") {
  const auto json = nlohmann::json::parse(to_json(plan()));
  const auto& pick = json.at("recommendation");
  for (const char* key :
       {"policy", "chunk_numel", "chunk_size_mb", "fraction", "slots", "flags", "requires", "device_peak_bytes",
        "device_reserved_bytes", "device_reserved_likely_bytes", "host_pinned_bytes_per_rank",
        "host_pinned_bytes_per_host", "optimizer_seconds", "step_seconds", "first_step_seconds", "second_step_seconds",
        "first_steps_pinned_bytes", "reason"})
    CHECK(pick.contains(key));
  CHECK(pick.at("chunk_numel") == 400'000'000);
  CHECK(pick.at("chunk_size_mb").is_null());
  CHECK(pick.at("device_peak_bytes") == 21055805952);
  CHECK(pick.at("flags").size() == 3);
  CHECK(json.at("candidates").size() == 1);
  CHECK(json.at("candidates")[0] == pick);
  CHECK(json.at("job") == "measured");
  CHECK(json.contains("ebb_version"));
}

TEST_CASE("without an answer the recommendation is null and the shortfall is told") {
  PlanReport report = plan();
  report.recommended.reset();
  report.shortfall = "3 GiB over";
  report.cures = {"--budget 24GiB"};
  const auto json = nlohmann::json::parse(to_json(report));
  CHECK(json.at("recommendation").is_null());
  CHECK(json.at("shortfall") == "3 GiB over");
  CHECK(json.at("cures").size() == 1);
  const std::string text = to_text(report, {});
  CHECK(text.rfind("nothing fits: 3 GiB over\n  would cure it: --budget 24GiB\n", 0) == 0);
}

TEST_CASE("names that are not UTF-8 do not break the document") {
  PlanReport report = plan();
  report.header.job = "caf\xe9";
  REQUIRE_NOTHROW(nlohmann::json::parse(to_json(report)));
}

TEST_CASE("the first line of a plan's text is what to paste") {
  const std::string text = to_text(plan(), {});
  CHECK(text.rfind("--offload-optimizer-states --offload-optimizer-states-chunk-numel 400000000\n", 0) == 0);
  CHECK(text.find("takes it: Megatron-LM with pull request 6544\nwhy: it fits.\n") != std::string::npos);
  CHECK(text.find("\n*  chunked  400000000") != std::string::npos);
  CHECK(text.find("Not in these figures:") != std::string::npos);
  CHECK(text.find('\033') == std::string::npos);
  CHECK(to_text(plan(), {.colour = true}).find('\033') != std::string::npos);
}

TEST_CASE("what the first steps cost more is told where they pin, and only then") {
  PlanReport report = plan();
  Candidate& pick = report.candidates[0];
  pick.first_step = pick.second_step = pick.step;
  CHECK(to_text(report, {}).find("step +") == std::string::npos);
  pick.first_step = {7.34};
  CHECK(to_text(report, {}).find("step +") == std::string::npos);  // later creation of state alone is no news
  pick.first_steps_pinned = Bytes{16'106'127'360};
  CHECK(to_text(report, {}).find("\nwhy: it fits.\nfirst step +6.000 s (pins 15.00 GiB a rank), warm-up apart\n\n") !=
        std::string::npos);
  pick.second_step = {3.34};
  SimulateReport simulated;
  simulated.candidate = pick;
  CHECK(to_text(simulated, {})
            .find("\nfirst step +6.000 s, second step +2.000 s (pins 15.00 GiB a rank), warm-up apart\n") !=
        std::string::npos);
  CHECK(nlohmann::json::parse(to_json(report)).at("recommendation").at("first_step_seconds") == 7.34);
}

TEST_CASE("a table aligns numbers right, text left, by characters and not bytes") {
  Table table({{"name", Align::left}, {"n"}});
  table.add_row({"\xc3\xa9t\xc3\xa9", "1"});
  table.add_row({"longer", "100"});
  const std::vector<std::string> expected = {"name      n", "\xc3\xa9t\xc3\xa9       1", "longer  100"};
  CHECK(table.lines() == expected);
}
