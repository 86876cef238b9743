// Every document that a command prints with --json, and every file that it writes, is valid by the schema that
// `ebb schema` publishes for it, and holds no key that the schema does not name. valijson validates.
#include <nlohmann/json.hpp>

#include "tests/cli/run_ebb.hpp"
#include "tests/schema_validator.hpp"

using namespace ebb::test;
using Json = nlohmann::json;

namespace {

Json schema_of(const std::string& name) {
  const Outcome outcome = run_ebb("schema " + name);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return Json::parse(outcome.out);
}

/// The same, but that no key is allowed which it does not name.
Json closed(Json schema) {
  if (schema.is_object() && schema.contains("properties")) schema["additionalProperties"] = false;
  for (Json& inner : schema)
    if (inner.is_structured()) inner = closed(inner);
  return schema;
}

void check_valid(const Json& document, const std::string& name) {
  const Json schema = schema_of(name);
  const SchemaValidator validator(closed(schema));
  INFO(name << "\n" << validator.fault_of(document));
  CHECK(validator.accepts(document));
  CHECK(document["format"] == "ebb-" + name);
  CHECK(schema["$id"] == "urn:ebb:schema:" + name + ":" + document["version"].dump());
}

/// One command with --json: its answer is `name`.
Json check_answer(const std::string& arguments, const std::string& name, int code = 0) {
  const Outcome outcome = run_ebb(arguments + " --json");
  INFO("ebb " << arguments << "\n" << outcome.err);
  REQUIRE(outcome.code == code);
  const Json document = Json::parse(outcome.out);
  check_valid(document, name);
  if (name.starts_with("answer-")) {
    static const SchemaValidator any(schema_of("answer"));
    CHECK(any.accepts(document));
  }
  return document;
}

const std::string kSmall = "tests/gpu/replay-small.yaml";
const std::string kRuns = "tests/data/replay/h200-2026-11-30/";

}  // namespace

TEST_CASE("answers about every job of the library are valid") {
  for (const std::string& job : library_jobs()) {
    const Outcome outcome = run_ebb("plan " + job + " --json");
    INFO(job << "\n" << outcome.err);
    REQUIRE((outcome.code == 0 || outcome.code == 1));
    check_valid(Json::parse(outcome.out), "answer-plan");
  }
  const Json nothing = check_answer("plan " + kMeasured + " --budget 10GiB", "answer-plan", 1);
  CHECK(nothing["recommendation"].is_null());
  CHECK(!nothing["cures"].empty());
}

TEST_CASE("answers about one policy are valid") {
  check_answer("simulate " + kMeasured + " --policy chunked --chunk-numel 1e8", "answer-simulate");
  check_answer("simulate " + kMeasured + " --policy resident", "answer-simulate");
  check_answer("simulate models/jobs/llama3-70b-hgx-h200.yaml --policy windowed", "answer-simulate");
  CHECK(check_answer("simulate " + kMeasured + " --policy tidal --cap 30GiB", "answer-simulate")["live_cap_bytes"] ==
        30LL << 30);
  CHECK(!check_answer("explain " + kMeasured + " --policy tidal", "answer-explain")["explanation"]["tide"].is_null());
  check_answer("simulate " + kSmall + " --policy chunked --chunk-numel 1e6 --life", "answer-life");
  check_answer("layout models/jobs/mixtral-8x7b-hgx-h200.yaml --rank 3", "answer-layout");
  check_answer("layout " + kMeasured + " --rank 0 --policy chunked --chunk-numel 1e8", "answer-layout");
  check_answer("explain " + kMeasured + " --phase step", "answer-explain");
  CHECK(!check_answer("explain " + kMeasured + " --policy resident", "answer-explain")["explanation"].is_null());
  CHECK(!check_answer("explain " + kMeasured, "answer-explain")["explanation"].is_null());
  check_answer("check " + kMeasured, "answer-check");
  check_answer("check " + kMeasured + " --policy chunked --chunk-numel 1e8 --megatron main", "answer-check", 2);
}

TEST_CASE("answers to many searches are valid, also where nothing fits") {
  check_answer("plan " + kMeasured + " --budget 30GiB --objective memory --robust", "answer-plan");
  check_answer("fit " + kMeasured + " --max sequence --budget 30GiB", "answer-fit");
  check_answer("fit " + kMeasured + " --min gpus --budget 30GiB", "answer-fit");
  check_answer("fit " + kMeasured + " --min host-memory --budget 30GiB", "answer-fit");
  check_answer("fit " + kMeasured + " --max layers --budget 2GiB", "answer-fit", 1);
  check_answer("sweep " + kMeasured + " --set link.h2d=26..52GB/s*2 --set budget.device=30GiB,2GiB", "answer-sweep");
  const Json sweep = check_answer("sweep " + kMeasured + " --set parallel.tensor=3,1", "answer-sweep");
  CHECK(sweep["rows"][0]["candidate"].is_null());
}

TEST_CASE("answers about a machine and its runs are valid") {
  const std::string job = "models/jobs/llama3-8b-hgx-h200.yaml";
  check_answer("doctor", "answer-doctor");  // this machine, whatever it is
  for (const std::string host : {"hgx-h200", "container-64g", "wsl2", "low-memlock"})
    check_answer("doctor --root tests/data/hosts/" + host, "answer-doctor");
  check_answer("doctor " + job + " --root tests/data/hosts/hgx-h200", "answer-doctor");
  check_answer("doctor " + job + " --root tests/data/hosts/container-64g", "answer-doctor", 1);
  const Json none =
      check_answer("doctor " + job + " --set budget.device=20GiB --root tests/data/hosts/hgx-h200", "answer-doctor", 1);
  CHECK(none["plan"]["policy"].is_null());

  check_answer("learn tests/data/logs/resident-1.8b.log " + kMeasured, "answer-learn");
  const fs::path chunked = write_job("schema-chunked.yaml", text_of_file(EBB_SOURCE_DIR "/" + kMeasured) +
                                                                "offload: {policy: chunked, chunk_numel: 1e9}\n");
  check_answer("learn tests/data/logs/chunked-1.8b.log " + chunked.string() + " -o " +
                   (scratch() / "schema-learned.yaml").string(),
               "answer-learn");
}

TEST_CASE("answers about the library are valid, each entry's too") {
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"models", "model"}, {"clusters", "cluster"}, {"policies", "policy"}};
  for (const auto& [all, one] : kinds) {
    const Json list = check_answer(all + " list", "answer-" + all);
    CHECK(list[all].size() > 2);
    for (const Json& entry : list[all])
      check_answer(all + " show " + entry["name"].get<std::string>(), "answer-" + one);
  }
}

TEST_CASE("plans and timelines are valid, predicted and measured, and so are the answers about them") {
  const std::string plan = (scratch() / "schema-plan.json").string();
  const std::string predicted = (scratch() / "schema-predicted.json").string();
  for (const std::string policy : {"chunked --chunk-numel 1e6", "pipelined --chunk-numel 1e6 --slots 3", "windowed",
                                   "cpu-adam", "full-reload", "resident"}) {
    REQUIRE(run_ebb("simulate " + kSmall + " --policy " + policy + " -o " + plan + " --timeline " + predicted).code ==
            0);
    check_valid(Json::parse(text_of_file(plan)), "plan");
    check_valid(Json::parse(text_of_file(predicted)), "timeline");
  }
  check_answer("simulate --plan " + plan + " --cluster hgx-h200", "answer-plan-times");
  REQUIRE(run_ebb("simulate " + kSmall + " --policy pipelined --chunk-numel 1e6 --slots 3 --life -o " + plan).code ==
          0);
  check_valid(Json::parse(text_of_file(plan)), "plan");

  for (const auto& entry : fs::directory_iterator(EBB_SOURCE_DIR "/" + kRuns))
    if (holds(entry.path().filename().string(), "chunked"))
      check_valid(Json::parse(text_of_file(entry.path())), "timeline");
  const std::string run = kRuns + "replay-moe-chunked-chunk-numel-100000000.measured.json";
  REQUIRE(
      run_ebb("simulate tests/gpu/replay-moe.yaml --policy chunked --chunk-numel 1e8 --timeline " + predicted).code ==
      0);
  check_answer("diff " + predicted + " " + run + " --fail-above 99%", "answer-diff");
}

TEST_CASE("the answer of a score is valid") {
  for (const auto& entry : fs::directory_iterator(EBB_TEST_DATA "/megatron"))
    if (holds(entry.path().filename().string(), "recorded") && entry.path().extension() == ".json")
      check_answer("score tests/data/megatron/" + entry.path().filename().string(), "answer-score");
}

TEST_CASE("schemas are named, and a wrong name is met with the right one") {
  for (const std::string name : {"job", "model", "cluster", "plan", "timeline", "answer", "answer-plan"}) {
    const Json schema = schema_of(name);
    CHECK(schema["$schema"] == "http://json-schema.org/draft-07/schema#");
    CHECK(!schema["title"].get<std::string>().empty());
  }
  check_rejected("schema jobs", 2, "did you mean \"job\"?");
  check_rejected("schema xxxxxxxxxxxxxxxxxxx", 2,
                 "known schemas: job, model, cluster, plan, timeline, answer, answer-plan");
}

TEST_CASE("a schema refuses a document of another kind, and one that lacks something") {
  Json plan = Json::parse(run_ebb("plan " + kMeasured + " --json").out);
  const SchemaValidator validator(schema_of("answer-plan"));
  CHECK(validator.accepts(plan));
  CHECK(!SchemaValidator(schema_of("answer-simulate")).accepts(plan));
  plan["a key of a later ebb"] = 1;
  CHECK(validator.accepts(plan));
  plan["candidates"][0]["step_seconds"] = "1.5";
  CHECK(!validator.accepts(plan));
  plan["candidates"][0].erase("step_seconds");
  CHECK(!validator.accepts(plan));
}
