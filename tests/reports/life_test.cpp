// The phases of a life in JSON and text: all figures are there, the curve is as given, and open figures are named.
#include <nlohmann/json.hpp>

#include "reports/answer_json.hpp"
#include "reports/answer_text.hpp"
#include "reports/explain.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::reports;

namespace {

Phase save() {
  Phase phase;
  phase.name = "save";
  phase.variant = "dp-reshardable";
  phase.duration = {1.5};
  phase.exposed = {1.25};
  phase.stored = 3_GiB;
  phase.storage_known = false;
  phase.device_peak = 30_GiB;
  phase.device_reserved_likely = 31_GiB;
  phase.device_reserved = 32_GiB;
  phase.device_upper = 33_GiB;
  phase.uncertainty = {{"fragmentation", 1_GiB}, {"order of allocations", 1_GiB}, {"expert imbalance", 1_GiB}};
  phase.terms = {{"gradients", 20_GiB, "4 B x 5,368,709,120"}, {"parameters", 10_GiB, "2 B x 5,368,709,120"}};
  phase.host_pinned_per_node = {4_GiB, 5_GiB};
  return phase;
}

ExplainReport explained() {
  ExplainReport report;
  report.header.job = "small";
  report.candidate.policy = "chunked";
  report.chosen = "as asked for";
  report.phases = {save()};
  report.curve.points = {{{0.0}, 10_GiB}, {{0.5}, 30_GiB}, {{1.0}, 10_GiB}};
  return report;
}

}  // namespace

TEST_CASE("a phase's JSON says how long, how much where, how sure, and of what") {
  ExplainReport report = explained();
  const auto all = nlohmann::json::parse(to_json(report));
  CHECK_FALSE(all.contains("curve"));
  report.phase = "save";
  const auto json = nlohmann::json::parse(to_json(report));
  const auto& phase = json.at("phases").at(0);
  CHECK(phase.at("name") == "save");
  CHECK(phase.at("exposed_seconds") == 1.25);
  CHECK(phase.at("storage_known") == false);
  CHECK(phase.at("device_upper_bytes") == (33_GiB).value);
  CHECK(phase.at("terms").at(1).at("origin") == "2 B x 5,368,709,120");
  CHECK(phase.at("uncertainty").size() == 3);
  CHECK(phase.at("host_pinned_bytes_per_node") == std::vector<std::int64_t>{(4_GiB).value, (5_GiB).value});
  CHECK(json.at("curve").size() == 3);
  CHECK(json.at("curve").at(1) == std::vector<double>{0.5, 32212254720.0});
}

TEST_CASE("a phase's text has every term, the sum, what may come on top, and the curve in one line") {
  ExplainReport report = explained();
  report.phase = "save";
  const std::string text = to_text(report, {});
  for (const char* part : {"gradients", "21,474,836,480", "in all", "32,212,254,720", "expert imbalance", "at most",
                           "35,433,480,192", "live bytes over a steady step of 1.000 s"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("simulate's text says what a save stores where the storage's speed is not known") {
  SimulateReport report;
  report.phases = {save()};
  const std::string text = to_text(report, {});
  CHECK(text.find("save (dp-reshardable)") != std::string::npos);
  CHECK(text.find("3.000 GiB a rank to storage, whose speed the cluster does not state") != std::string::npos);
}
