// The report of `ebb check`: one line when nothing is broken, else every rule's line and source; JSON with the same.
#include <nlohmann/json.hpp>

#include "reports/check_json.hpp"
#include "reports/check_text.hpp"
#include "tests/catch.hpp"

using namespace ebb::reports;

namespace {

BrokenRule broken() {
  return {.line = "job.yaml:3:20: parallel.tensor: 3 does not divide the 32 heads; ranks hold whole heads; use 2 or 4",
          .rule = "tensor-heads",
          .place = "job.yaml:3:20",
          .key = "parallel.tensor",
          .problem = "3 does not divide the 32 heads",
          .reason = "ranks hold whole heads",
          .cure = "use 2 or 4",
          .source = "somewhere:12"};
}

CheckReport report() {
  CheckReport made;
  made.job = "job";
  made.megatron = "any";
  made.rules = 70;
  return made;
}

}  // namespace

TEST_CASE("a job that breaks nothing is one line") {
  CHECK(to_text(report(), {}) == "no rule of 70 is broken\n");
  CheckReport open = report();
  open.policies = {{"resident", {}}, {"chunked", {}}};
  CHECK(to_text(open, {}) == "no rule of 70 is broken\n");
}

TEST_CASE("broken rules are told with their source, and policies that are ruled out") {
  CheckReport bad = report();
  bad.violations = {broken()};
  CHECK(to_text(bad, {}) == broken().line + "\n    rule tensor-heads: somewhere:12\n1 violation of 70 rules\n");
  CheckReport open = report();
  open.policies = {{"resident", {}}, {"chunked", {broken()}}};
  CHECK(to_text(open, {}) ==
        "no rule of 70 is broken\npolicies that nothing stands against: resident\nchunked is ruled out: " +
            broken().line + "\n    rule tensor-heads: somewhere:12\n");
}

TEST_CASE("the JSON of a check has the agreed keys") {
  CheckReport bad = report();
  bad.violations = {broken()};
  bad.policies = {{"resident", {}}, {"chunked", {broken()}}};
  const auto json = nlohmann::json::parse(to_json(bad));
  for (const char* key : {"rule", "place", "key", "problem", "reason", "cure", "source"})
    CHECK(json.at("violations")[0].contains(key));
  CHECK(json.at("policy").is_null());
  CHECK(json.at("policies")[0].at("ruled_out") == false);
  CHECK(json.at("policies")[1].at("because")[0].at("rule") == "tensor-heads");
  CHECK(to_json(bad) == to_json(bad));
}
