// Proves the statistics of the score report and that both of its forms say every case.
#include <nlohmann/json.hpp>

#include "reports/score_json.hpp"
#include "reports/score_text.hpp"
#include "tests/catch.hpp"

namespace ebb::reports {
namespace {

ScoreCase case_of(const std::string& id, std::int64_t predicted, std::int64_t recorded) {
  ScoreCase c;
  c.id = id;
  c.predicted_allocated = Bytes{predicted};
  c.recorded_allocated = Bytes{recorded};
  c.predicted_peak = Bytes{2 * predicted};
  c.recorded_peak = Bytes{2 * recorded};
  c.predicted_iteration = Seconds{1};
  c.recorded_iteration = Seconds{2};
  c.terms = {{"parameters", Bytes{predicted - 24}}, {"allocator rounding", Bytes{24}}};
  c.traits.emplace_back(id == "a" ? "pipeline" : "experts");
  return c;
}

ScoreReport report() {
  ScoreReport report;
  report.file = "file.json";
  report.cases = {case_of("a", 1010, 1000), case_of("b", 900, 1000), case_of("c", 1000, 1000)};
  report.cases.push_back(case_of("d", 1, 1));
  report.cases.back().reason = "not this one";
  return report;
}

}  // namespace

TEST_CASE("median, nine of ten, worst and bias of signed errors") {
  std::vector<double> errors;
  for (int i = 1; i <= 10; ++i) errors.push_back(i % 2 == 0 ? i : -i);
  const ErrorSummary s = summarize(errors);
  CHECK(s.count == 10);
  CHECK(s.median == 5);
  CHECK(s.p90 == 9);
  CHECK(s.worst == 10);
  CHECK(s.bias == Approx(0.5));
  CHECK(summarize({}).count == 0);
}

TEST_CASE("cases within a part or a floor, whichever is more; those not modelled count nowhere") {
  CHECK(allocated_within(report(), 0.01, Bytes{0}) == 2);
  CHECK(allocated_within(report(), 0.0, Bytes{100}) == 3);
  CHECK(allocated_errors(report()).size() == 3);
  CHECK(iteration_errors(report()) == std::vector<double>{-0.5, -0.5, -0.5});
}

TEST_CASE("what remains is the mean of recorded less predicted by trait, in the order of the cases") {
  const std::vector<Remainder> all = remainders(report());
  REQUIRE(all.size() == 2);
  CHECK(all[0].trait == "pipeline");
  CHECK(all[0].allocated == Bytes{-10});
  CHECK(all[1].cases == 2);
  CHECK(all[1].allocated == Bytes{50});
  CHECK(all[1].peak == Bytes{100});
}

TEST_CASE("the JSON names every case, and predicts nothing where there is a reason") {
  const nlohmann::json json = nlohmann::json::parse(to_json(report()));
  REQUIRE(json["cases"].size() == 4);
  const nlohmann::json& a = json["cases"][0];
  CHECK(a["id"] == "a");
  CHECK(a["predicted_allocated_bytes"] == 1010);
  CHECK(a["recorded_allocated_bytes"] == 1000);
  CHECK(a["predicted_peak_bytes"] == 2020);
  CHECK(a["recorded_peak_bytes"] == 2000);
  CHECK(a["predicted_iteration_seconds"] == 1.0);
  CHECK(a["recorded_iteration_seconds"] == 2.0);
  CHECK(a["reason"].is_null());
  CHECK(a["terms"][0]["name"] == "parameters");
  CHECK(a["allocated_remainder_bytes"] == -10);
  const nlohmann::json& d = json["cases"][3];
  CHECK(d["reason"] == "not this one");
  CHECK(d["predicted_peak_bytes"].is_null());
  CHECK(json["allocated"]["cases"] == 3);
  CHECK(json["allocated"]["worst"].get<double>() == Approx(0.1));
  CHECK(to_json(report()) == to_json(report()));
}

TEST_CASE("the text says every case once, and its reason") {
  const std::string text = to_text(report(), Style{});
  CHECK(text.rfind("file.json: 3 of 4 cases modelled", 0) == 0);
  CHECK(text.find("d: not this one") != std::string::npos);
  CHECK(text.find("allocated within 1 % or 8 MiB: 3 of 3") != std::string::npos);
  ScoreReport none;
  none.file = "none.json";
  CHECK(to_text(none, Style{}).rfind("none.json: 0 of 0 cases modelled", 0) == 0);
}

}  // namespace ebb::reports
