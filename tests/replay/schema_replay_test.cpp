// Every document that `ebb-replay` prints with --json is valid by the schema that `ebb schema` publishes for it, and
// holds no key that the schema does not name. Run on the CPU; what only a GPU prints is written from made-up results.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "replay/run_report.hpp"
#include "reports/schema.hpp"
#include "tests/catch.hpp"
#include "tests/schema_validator.hpp"

using namespace ebb;
using namespace ebb::test;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

/// The same schema, but that no key is allowed which it does not name.
Json closed(Json schema) {
  if (schema.is_object() && schema.contains("properties")) schema["additionalProperties"] = false;
  for (Json& inner : schema)
    if (inner.is_structured()) inner = closed(inner);
  return schema;
}

void check_valid(const std::string& text, const std::string& name) {
  const Json document = Json::parse(text);
  const SchemaValidator validator(closed(Json::parse(reports::answer_schema(name))));
  INFO(name << "\n" << validator.fault_of(document));
  CHECK(validator.accepts(document));
  CHECK(document["format"] == "ebb-answer-" + name);
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A directory of this test's own; commands run in it.
class Workplace {
 public:
  Workplace() { fs::create_directories(path_); }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  /// What `ebb-replay` followed by `arguments` prints.
  std::string run(const std::string& arguments) const {
    const std::string command =
        "cd '" + path_.string() + "' && '" EBB_REPLAY_BINARY "' " + arguments + " >out 2>err </dev/null";
    const int status = std::system(command.c_str());
    INFO("ebb-replay " << arguments << "\n" << contents(path_ / "err"));
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
    return contents(path_ / "out");
  }
  void ebb(const std::string& arguments) const {
    REQUIRE(std::system(("cd '" + path_.string() + "' && '" EBB_BINARY "' " + arguments + " >/dev/null").c_str()) == 0);
  }

 private:
  fs::path path_ = fs::temp_directory_path() / ("ebb_schema_replay_" + std::to_string(::getpid()));
};

const std::string kTiny = EBB_TEST_DATA "/replay/tiny.yaml";

}  // namespace

TEST_CASE("what ebb-replay answers on the CPU is valid") {
  const Workplace here;
  here.ebb("simulate " + kTiny + " --policy chunked --chunk-numel 1e4 -o plan.json");
  check_valid(here.run("run plan.json --device cpu --repeats 2 --digests --json"), "run-numbers");
  check_valid(here.run("equivalence " + kTiny + " --policy chunked --chunk-numel 1e4 --steps 2 --json"), "equivalence");
  check_valid(here.run("equivalence " + kTiny + " --policy chunked --chunk-numel 1e4 --life --steps 8 --json"),
              "life-equivalence");
  here.ebb("simulate " + kTiny + " --policy chunked --chunk-numel 1e4 --life -o life.json");
  check_valid(here.run("train life.json --device cpu --steps 3 --checkpoint saved --save-every 2 --json"), "train");
  check_valid(here.run("train life.json --device cpu --steps 4 --checkpoint saved --resume --json"), "train");
  check_valid(here.run("checkpoint saved --json"), "checkpoint");
  check_valid(here.run("calibrate --from " EBB_TEST_DATA "/replay/h200-2026-11-30/calibration.jsonl -o c.yaml --json"),
              "calibrate");
}

TEST_CASE("the answer of a run on GPUs is valid, with and without what only some runs know") {
  replay::RunResult run;
  replay::RankRun rank;
  rank.timeline.ops = {{.kind = OpKind::copy_h2d, .phase = Phase::step, .bytes = {1000}, .start = {0}, .end = {10}}};
  rank.timeline.steps = {{100}, {110}};
  rank.timeline.updates = {{10}, {11}};
  rank.timeline.memory.live_peak = {1000};
  rank.numbers.steps = {{}, {}};
  run.ranks = {rank, rank};
  run.ranks[1].timeline.rank = 1;
  MemoryFigures& memory = run.ranks[1].timeline.memory;
  memory.live_by_phase = {{Phase::forward, {1000}}};
  memory.torch_allocated_peak = memory.torch_reserved_peak = memory.driver_peak = memory.instruments = Bytes{1};
  run.provenance = {{"device", "none"}};
  run.remarks = {"made up"};
  check_valid(replay::to_json(run), "run");
}
