// Proves that both forms of a comparison say the sentence, every figure and every failure, the slowest rank in the text
// and all ranks in the JSON.
#include <nlohmann/json.hpp>

#include "reports/diff_json.hpp"
#include "reports/diff_text.hpp"
#include "reports/plan_times.hpp"
#include "tests/catch.hpp"

namespace ebb::reports {
namespace {

DiffRank rank_of(std::int64_t number, double measured) {
  DiffRank rank;
  rank.rank = number;
  rank.repeats = 5;
  rank.step = {{1.0}, {measured}, {measured - 0.01}, {measured + 0.02}};
  rank.update = {{0.5}, {0.5}, {0.5}, {0.5}};
  rank.phases = {{"forward", {0.5}, {measured - 0.5}}, {"step", {0.5}, {0.5}}};
  DiffClass copies;
  copies.name = "copies to device";
  copies.ops = 3;
  copies.bytes = 3_GiB;
  copies.busy_predicted = {0.4};
  copies.busy_measured = {0.45};
  copies.rate_predicted = BytesPerSecond{55.3e9};
  copies.exposed_predicted = {0.3};
  copies.exposed_measured = {0.3 + measured - 1.0};
  rank.classes = {copies};
  rank.memory.live_predicted = rank.memory.live_measured = 2_GiB;
  rank.memory.live_by_phase = {{"step", 2_GiB, 2_GiB}};
  rank.memory.host = {{"pinned", 8_GiB, 8_GiB}, {"pageable", {0}, {0}}};
  rank.memory.of_run = {{"torch reserved", 3_GiB}, {"driver", 4_GiB}};
  rank.verdict = "sentence of rank " + std::to_string(number);
  return rank;
}

DiffReport report() {
  DiffReport report;
  report.job = "a job";
  report.candidate = "resident";
  report.cluster = "a cluster";
  report.measured_source = "measured";
  report.provenance = {{"device", "a GPU"}};
  report.ranks = {rank_of(0, 1.02), rank_of(1, 1.04)};
  report.slowest = 1;
  return report;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("diff text: the sentence of the slowest rank first, then its figures") {
  const std::string text = to_text(report(), Style{});
  CHECK(
      text.rfind("sentence of rank 1\n\na job (resident), rank 1, the slowest of 2: predicted on a cluster, measured 5 "
                 "times, the median\n  repeat\n",
                 0) == 0);
  CHECK_FALSE(holds(text, "sentence of rank 0"));
  for (const char* part :
       {"1.040 s", "1.030 s", "1.060 s", "+4.0 %", "+40.00 ms", "55.30 GB/s", "100 %",
        "Live bytes equal in every phase; peak 2.000 GiB (2147483648 B).",
        "Host memory, pinned: 8.000 GiB predicted, 8.000 GiB measured.",
        "Device memory of the run: torch reserved 3.000 GiB, driver 4.000 GiB.", "Within 5 %, live bytes equal."}) {
    INFO(part << "\n" << text);
    CHECK(holds(text, part));
  }
  CHECK_FALSE(holds(text, "pageable"));
}

TEST_CASE("diff text: failures and bytes that differ are named") {
  DiffReport bad = report();
  bad.failures = {"the step is off by +4.0 %, more than 3 %"};
  bad.ranks[1].memory.live_by_phase[0].measured = 2_GiB + Bytes{512};
  const std::string text = to_text(bad, Style{});
  CHECK(holds(text, "FAIL: the step is off by +4.0 %, more than 3 %\n"));
  CHECK(holds(text, "  step: 2147483648 B predicted, 2147484160 B measured\n"));
  CHECK_FALSE(holds(text, "Within"));
}

TEST_CASE("diff JSON: all ranks, numbers as numbers, what is not known as null") {
  const auto json = nlohmann::json::parse(to_json(report()));
  CHECK(json.at("verdict") == "sentence of rank 1");
  CHECK(json.at("slowest_rank") == 1);
  CHECK(json.at("failures").empty());
  REQUIRE(json.at("ranks").size() == 2);
  const auto& rank = json.at("ranks").at(0);
  CHECK(rank.at("step").at("measured_seconds") == 1.02);
  CHECK(rank.at("step").at("relative").get<double>() == Approx(0.02));
  CHECK(rank.at("classes").at(0).at("bytes") == (3LL << 30));
  CHECK(rank.at("classes").at(0).at("rate_predicted") == 55.3e9);
  CHECK(rank.at("classes").at(0).at("rate_measured").is_null());
  CHECK(rank.at("classes").at(0).at("share") == 1.0);
  CHECK(rank.at("memory").at("live_equal") == true);
  CHECK(rank.at("memory").at("of_run").at(1).at("bytes") == (4LL << 30));
  CHECK(json.at("provenance").at(0).at("value") == "a GPU");
}

TEST_CASE("times of a plan: each rank, in both forms") {
  const PlanTimes times{"a job", "plan.json", "a cluster", "1", {{3, {1.5}, {0.25}, 2_GiB, 8_GiB, {0}}}};
  CHECK(to_text(times, Style{}).rfind("a job (plan.json) on a cluster\n", 0) == 0);
  CHECK(holds(to_text(times, Style{}), "1.500 s"));
  const auto json = nlohmann::json::parse(to_json(times));
  CHECK(json.at("ranks").at(0).at("rank") == 3);
  CHECK(json.at("ranks").at(0).at("optimizer_step_seconds") == 0.25);
  CHECK(json.at("ranks").at(0).at("pinned_bytes") == (8LL << 30));
}

}  // namespace ebb::reports
