// `ebb doctor` as text and as JSON.
#include <nlohmann/json.hpp>
#include <sstream>

#include "reports/doctor_json.hpp"
#include "reports/doctor_text.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::reports;

namespace {

DoctorReport report() {
  DoctorReport made;
  made.ebb_version = "1";
  made.findings = {{"memory", "ok", "1 TiB", "", ""},
                   {"cgroup", "note", "64 GiB left", std::string(40, 'x') + " " + std::string(40, 'y'), "raise it"}};
  return made;
}

}  // namespace

TEST_CASE("doctor text: words wrap behind topic and verdict before the hundredth column") {
  const std::string text = to_text(report(), Style{});
  CAPTURE(text);
  CHECK(text.find("memory      ok       1 TiB\n") != std::string::npos);
  CHECK(text.find("cgroup      note     64 GiB left; xxx") != std::string::npos);
  CHECK(text.find("\n                     yyy") != std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
  CHECK(text.find("0 problems, 1 note\n") != std::string::npos);
}

TEST_CASE("doctor: a problem stands against a plan, and so does that there is none") {
  DoctorReport made = report();
  made.findings[0].verdict = "problem";
  CHECK_FALSE(made.stands_against());  // no plan
  made.plan = PlanNeed{"job", "chunked", 2, 8, 1_GiB, 2_GiB, 3_GiB};
  CHECK(made.stands_against());
  CHECK(to_text(made, Style{}).find("cannot run the plan") != std::string::npos);
  made.findings[0].verdict = "ok";
  CHECK_FALSE(made.stands_against());
  made.plan->policy.clear();
  CHECK(made.stands_against());
  CHECK(to_text(made, Style{}).find("no plan fits") != std::string::npos);
}

TEST_CASE("doctor json: bytes are integers, and every finding is there") {
  DoctorReport made = report();
  made.plan = PlanNeed{"job", "chunked", 2, 8, 1_GiB, 2_GiB, 3_GiB};
  const auto json = nlohmann::json::parse(to_json(made));
  CHECK(json["plan"]["pinned_bytes_per_host"] == 1073741824);
  CHECK(json["plan"]["checkpoint_bytes"] == 3221225472);
  CHECK(json["stands_against_plan"] == false);
  REQUIRE(json["findings"].size() == 2);
  CHECK(json["findings"][1]["verdict"] == "note");
  CHECK(json["findings"][1]["cure"] == "raise it");
}
