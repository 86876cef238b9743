// The schemas of plan and timeline files say what their readers do: every object's keys, as the reader itself lists
// them in its messages; every key left out; every value replaced by values of other kinds. By valijson, which is not
// ours. What needs two values (an index that nothing has, ranks that descend) is the reader's alone.
#include <functional>
#include <set>
#include <sstream>

#include "models/plan_json.hpp"
#include "models/schema/schema.hpp"
#include "models/timeline_file.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"
#include "tests/schema_validator.hpp"

using namespace ebb;
using namespace ebb::test;
using Value = nlohmann::json;
using Pointer = nlohmann::json::json_pointer;

namespace {

const std::string kPlan = R"({
"format": "ebb-plan", "version": 3, "ranks": [{
  "job": "j",
  "candidate": {"policy": "chunked", "chunk_numel": 100, "chunk_size_mb": 0, "fraction": 1.0, "slots": 0},
  "rank": 0, "part": "step",
  "precision": {"params": "bf16", "grads": "fp32", "exp_avg": "fp32", "exp_avg_sq": "fp32", "master": "fp32"},
  "buckets": [{"range": [0, 100]}],
  "parameters": [{"name": "p", "shape": [10, 10], "at": 0}, {"name": "q", "shape": [1], "at": 100}],
  "shards": [{"name": "p", "numel": 100, "at": 0}],
  "streams": [{"name": "compute", "kind": "compute"}, {"name": "h2d", "kind": "h2d"}],
  "buffers": [{"name": "b", "memory": "device", "bytes": 8}, {"name": "c", "memory": "pinned", "bytes": 8}],
  "ops": [{"kind": "compute", "phase": "forward", "stream": 0},
          {"kind": "copy-h2d", "phase": "step", "stream": 1, "deps": [0], "bytes": 8},
          {"kind": "kernel", "phase": "step", "stream": 0, "deps": [1], "work": "adam", "bytes": 8}]
}]})";

const std::string kTimeline = R"({
"format": "ebb-timeline", "version": 2, "source": "measured", "job": "j",
"candidate": {"policy": "chunked", "chunk_numel": 100, "chunk_size_mb": 0, "fraction": 1.0, "slots": 0},
"plan_digest": "0123456789abcdef", "cluster": "", "provenance": [["device", "x"]],
"ranks": [{"rank": 0, "steps_ps": [10, 11], "updates_ps": [5, 6],
  "memory": {"live_peak": 8, "live_by_phase": [{"phase": "forward", "bytes": 8}], "pinned": 0, "pageable": 0},
  "ops": [{"kind": "compute", "phase": "forward", "stream": "compute", "start_ps": 1000, "end_ps": 2000}]}]})";

struct FileKind {
  const char* schema;
  const std::string& sample;
  std::function<void(const std::string&)> read;
};

const std::vector<FileKind>& kinds() {
  static const std::vector<FileKind> all = {
      {"plan", kPlan, [](const std::string& text) { plans_from_json(text, "f.json"); }},
      {"timeline", kTimeline, [](const std::string& text) { timeline_file_from_json(text, "f.json"); }}};
  return all;
}

/// Calls `visit` with every schema and where in the sample its first value is, whether or not that is there.
void walk(const Value& schema, const Pointer& at, const std::function<void(const Pointer&, const Value&)>& visit) {
  visit(at, schema);
  if (schema.contains("properties"))
    for (const auto& [key, inner] : schema["properties"].items()) walk(inner, at / key, visit);
  // The second of a list, where the first may depend on nothing; the sample has one where that matters.
  if (schema.contains("items")) {
    const Value& items = schema["items"];
    const std::string place = at.to_string();
    const bool second = place.ends_with("/ops") || place.ends_with("/parameters");
    walk(items.is_array() ? items[0] : items, at / static_cast<std::size_t>(second ? 1 : 0), visit);
  }
}

std::set<std::string> known_in(const std::string& message) {
  const std::size_t known = message.find("known keys: ");
  REQUIRE(known != std::string::npos);
  std::istringstream list(message.substr(known + 12));
  std::set<std::string> words;
  for (std::string word; std::getline(list, word, ',');) words.insert(word.substr(word.find_first_not_of(' ')));
  return words;
}

/// `value` at `at`, with everything in between made; false where a list would get a gap.
bool put(Value& sample, const Pointer& at, const Value& value) {
  try {
    sample[at] = value;
    return sample.dump().find("[null,") == std::string::npos;
  } catch (const Value::exception&) {
    return false;
  }
}

const std::string kNonsense = "qqqqqqqqqqqqqqqqqqqqqqqq";

}  // namespace

TEST_CASE("the samples are valid by reader and schema") {
  for (const FileKind& kind : kinds()) {
    INFO(kind.schema << "\n" << error_of([&] { kind.read(kind.sample); }));
    CHECK(error_of([&] { kind.read(kind.sample); }).empty());
    CHECK(SchemaValidator(Value::parse(file_schema(kind.schema))).fault_of(Value::parse(kind.sample)).empty());
  }
}

TEST_CASE("schema and reader know the same keys in every object of a document") {
  int objects = 0;
  for (const FileKind& kind : kinds())
    walk(Value::parse(file_schema(kind.schema)), Pointer(), [&](const Pointer& at, const Value& schema) {
      if (!schema.contains("properties")) return;
      Value sample = Value::parse(kind.sample);
      INFO(kind.schema << at);
      REQUIRE(put(sample, at / kNonsense, 1));
      std::set<std::string> keys;
      for (const auto& [key, inner] : schema["properties"].items()) keys.insert(key);
      CHECK(known_in(error_of([&] { kind.read(sample.dump()); })) == keys);
      CHECK(schema["additionalProperties"] == false);
      ++objects;
    });
  CHECK(objects == 16);
}

TEST_CASE("schema and reader need the same keys of a document") {
  int needed = 0;
  for (const FileKind& kind : kinds()) {
    const Value whole = Value::parse(file_schema(kind.schema));
    const SchemaValidator validator(whole);
    walk(whole, Pointer(), [&](const Pointer& at, const Value& schema) {
      if (!schema.contains("properties")) return;
      for (const auto& [key, inner] : schema["properties"].items()) {
        Value sample = Value::parse(kind.sample);
        if (!sample.contains(at) || !sample[at].contains(key)) continue;
        sample[at].erase(key);
        const std::string error = error_of([&] { kind.read(sample.dump()); });
        INFO(kind.schema << at << " " << key << "\n" << error);
        CHECK(validator.accepts(sample) == error.empty());
        if (!error.empty()) ++needed;
      }
    });
  }
  CHECK(needed > 50);
}

TEST_CASE("reader and schema refuse the same kinds of values in a document") {
  const std::vector<Value> probes = {kNonsense,
                                     -1,
                                     0,
                                     1,
                                     1.5,
                                     true,
                                     nullptr,
                                     "step",
                                     "h2d",
                                     "fp8",
                                     Value::array(),
                                     Value::array({1}),
                                     Value::array({0, 1}),
                                     Value::object(),
                                     5e18};
  int both_refused = 0;
  int both_took = 0;
  int only_reader = 0;
  for (const FileKind& kind : kinds()) {
    const Value whole = Value::parse(file_schema(kind.schema));
    const SchemaValidator validator(whole);
    walk(whole, Pointer(), [&](const Pointer& at, const Value&) {
      for (const Value& probe : probes) {
        Value sample = Value::parse(kind.sample);
        if (!put(sample, at, probe)) continue;
        const std::string error = error_of([&] { kind.read(sample.dump()); });
        const std::string fault = validator.fault_of(sample);
        INFO(kind.schema << at << ": " << probe << "\nreader: " << error << "\nschema: " << fault);
        // Whatever the reader takes, the schema does.
        if (error.empty()) CHECK(fault.empty());
        for (const char* kind_of_value : {"expected a list", "expected true or false", "expected a number",
                                          "expected a text", "expected an object", "unknown word"})
          if (error.find(kind_of_value) != std::string::npos) CHECK(!fault.empty());
        ++(error.empty() ? both_took : fault.empty() ? only_reader : both_refused);
      }
    });
  }
  CHECK(both_took > 50);
  CHECK(both_refused > 900);
  CHECK(only_reader < both_refused / 4);
}
