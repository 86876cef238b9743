// The schemas of jobs, models and clusters say what their readers do. Compared key by key: every mapping's known keys,
// every word list, every range as the reader itself states them in its messages; every key left out; every value
// replaced by values of other kinds; and random damage to the library. A validator that is not ours (valijson) reads
// the schemas.
#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "models/cluster_yaml.hpp"
#include "models/job_yaml.hpp"
#include "models/library.hpp"
#include "models/model_yaml.hpp"
#include "models/schema/schema.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"
#include "tests/models/mutate.hpp"
#include "tests/models/yaml_to_json.hpp"
#include "tests/schema_validator.hpp"

using namespace ebb;
using namespace ebb::test;
using Schema = nlohmann::json;

namespace {

struct FileKind {
  std::string name;  // of its schema
  Library library;
  std::function<void(const YamlNode&)> read;
};

const std::vector<FileKind>& kinds() {
  static const std::vector<FileKind> all = {
      {"model", Library::models, [](const YamlNode& node) { read_model(node, "m"); }},
      {"cluster", Library::clusters, [](const YamlNode& node) { read_cluster(node, "c"); }},
      {"job", Library::jobs, [](const YamlNode& node) { read_job(node, "f.yaml"); }}};
  return all;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

YamlNode parsed(const std::string& text) { return parse_yaml(text, "f.yaml"); }

void add(YamlNode& map, const std::string& key, YamlNode value) {
  YamlEntry entry;
  entry.key = key;
  entry.value = std::move(value);
  map.entries.push_back(std::move(entry));
}

/// A job with every block that a job can have, model and cluster in place.
YamlNode made_full_job() {
  YamlNode job = parsed(
      "parallel: {gpus: 8}\n"
      "batch: {global: 64, sequence: 4096}\n"
      "precision: {fp8: {recipe: none}, fp4: {recipe: none}}\n"
      "recompute: {granularity: none}\n"
      "offload: {policy: auto}\n"
      "budget: {device: 60GiB}\n"
      "compute: {attention: flash, adam_by_policy: {chunked: fused}}\n"
      "measured: {peak_remainder: 1GiB}\n"
      "optimizer: {kind: adam}\n"
      "activations: {bias_fusion: true}\n"
      "experts: {dispatcher: alltoall}\n"
      "checkpoint: {start: fresh}\n"
      "megatron: {fsdp: false}\n");
  YamlNode model = parsed(
      "layers: 4\nhidden: 512\nffn: 2048\nheads: 8\nvocab: 1000\nmoe: {experts: 8, top_k: 2}\n"
      "mla: {kv_lora_rank: 64}\nmtp: {layers: 1}\n");
  YamlNode cluster = parsed(contents(library_path(Library::clusters, "hgx-h200")));
  const std::string figure = "{value: 1GB/s, source: \"measured: here\"}";
  if (cluster.find("topology") == nullptr) add(cluster, "topology", parsed("{switch_both: " + figure + "}"));
  if (cluster.find("storage") == nullptr) add(cluster, "storage", parsed("{read: " + figure + "}"));
  add(job, "model", model);
  add(job, "cluster", cluster);
  return job;
}

YamlNode full_job() {
  static const YamlNode job = made_full_job();
  return job;
}

YamlNode scalar(const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  return node;
}

using Path = std::vector<std::string>;

std::string shown(const Path& path) {
  std::string text;
  for (const std::string& key : path) text += (text.empty() ? "" : ".") + key;
  return text;
}

/// The node at `path`, made where it is missing.
YamlNode& node_at(YamlNode& root, const Path& path) {
  YamlNode* node = &root;
  for (const std::string& key : path) {
    if (node->kind != YamlNode::Kind::map) {
      *node = YamlNode{};
      node->kind = YamlNode::Kind::map;
    }
    if (node->find(key) == nullptr) add(*node, key, {});
    for (YamlEntry& entry : node->entries)
      if (entry.key == key) {
        node = &entry.value;
        break;
      }
  }
  return *node;
}

/// The schema itself, or that of the thing in place of a reference, or beside `auto`.
const Schema& main_of(const Schema& schema) {
  if (!schema.contains("anyOf") || schema.contains("properties")) return schema;
  return schema["anyOf"].back();
}

/// Calls `visit` with every object and every value of a schema, and its path; not with what is in lists.
void walk(const Schema& schema, const Path& path, const std::function<void(const Path&, const Schema&)>& visit) {
  const Schema& at = main_of(schema);
  visit(path, at);
  if (!at.contains("properties")) return;
  for (const auto& [key, inner] : at["properties"].items()) {
    Path deeper = path;
    deeper.push_back(key);
    walk(inner, deeper, visit);
  }
}

/// What follows "known KIND: " in a message.
std::set<std::string> known_in(const std::string& message) {
  const std::size_t known = message.find("known ");
  REQUIRE(known != std::string::npos);
  std::istringstream list(message.substr(message.find(": ", known) + 2));
  std::set<std::string> words;
  for (std::string word; std::getline(list, word, ',');) words.insert(word.substr(word.find_first_not_of(' ')));
  return words;
}

bool says(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

/// Whether the reader complains of something that a schema can say.
bool is_structural(const std::string& error) {
  for (const char* part : {"unknown key", "must be a mapping", "must be a single value", "must be a list", "is missing",
                           "cannot be", "unknown module"})
    if (says(error, part)) return true;
  return false;
}

const std::string kNonsense = "qqqqqqqqqqqqqqqqqqqqqqqq";

/// Some keys are refused beside others, which a schema does not say: what must be so for `path` to be read.
void make_room_for(YamlNode& job, const Path& path) {
  if (shown(path) == "recompute.method" || shown(path) == "recompute.layers")
    node_at(job, {"recompute", "granularity"}) = scalar("full");
  if (shown(path) == "recompute.modules") node_at(job, {"recompute", "granularity"}) = scalar("selective");
}

Schema schema_of(const std::string& name) { return Schema::parse(file_schema(name)); }

std::string job_error(const YamlNode& job) {
  return error_of([&] { read_job(job, "f.yaml"); });
}

}  // namespace

TEST_CASE("every file of the library is valid by its schema") {
  for (const FileKind& kind : kinds()) {
    const SchemaValidator validator(schema_of(kind.name));
    const std::vector<std::string> names = library_names(kind.library);
    REQUIRE(names.size() > 5);
    for (const std::string& name : names) {
      INFO(kind.name << " " << name);
      CHECK(validator.fault_of(json_of(parsed(contents(library_path(kind.library, name))))).empty());
    }
  }
}

TEST_CASE("a job with every block is valid by reader and schema") {
  const YamlNode job = full_job();
  CHECK(job_error(job).empty());
  CHECK(SchemaValidator(schema_of("job")).fault_of(json_of(job)).empty());
}

TEST_CASE("the job's schema holds those of model and cluster") {
  const Schema job = schema_of("job");
  for (const std::string name : {"model", "cluster"}) {
    Schema own = schema_of(name);
    for (const char* key : {"$schema", "$id", "title"}) own.erase(key);
    CHECK(job["properties"][name]["anyOf"][1] == own);
  }
}

TEST_CASE("schema and reader know the same keys in every mapping") {
  int mappings = 0;
  walk(schema_of("job"), {}, [&](const Path& path, const Schema& schema) {
    if (!schema.contains("properties")) return;
    INFO(shown(path));
    YamlNode job = full_job();
    node_at(job, path).kind = YamlNode::Kind::map;
    add(node_at(job, path), kNonsense, scalar("1"));
    const std::string error = job_error(job);
    INFO(error);
    std::set<std::string> keys;
    for (const auto& [key, inner] : schema["properties"].items()) keys.insert(key);
    CHECK(known_in(job_error(job)) == keys);
    CHECK(schema["additionalProperties"] == false);
    ++mappings;
  });
  CHECK(mappings > 60);
}

TEST_CASE("schema and reader know the same words and the same ranges") {
  int choices = 0;
  int booleans = 0;
  int counts = 0;
  walk(schema_of("job"), {}, [&](const Path& path, const Schema& schema) {
    YamlNode job = full_job();
    make_room_for(job, path);
    INFO(shown(path));
    if (schema.contains("enum") || schema["type"] == "boolean") {
      node_at(job, path) = scalar(kNonsense);
      const Schema words = schema.contains("enum") ? schema["enum"] : Schema({"true", "false"});
      CHECK(known_in(job_error(job)) == words.get<std::set<std::string>>());
      ++(schema.contains("enum") ? choices : booleans);
    } else if (schema["type"] == Schema({"integer", "string"})) {
      node_at(job, path) = scalar("9e18");
      const std::string range =
          fmt::format("from {} to {}", schema["minimum"].get<std::int64_t>(), schema["maximum"].get<std::int64_t>());
      INFO(job_error(job));
      CHECK(says(job_error(job), range));
      ++counts;
    }
  });
  CHECK(choices > 20);
  CHECK(booleans > 35);
  CHECK(counts > 40);
}

TEST_CASE("schema and reader know the same modules of recomputation") {
  YamlNode job = full_job();
  node_at(job, {"recompute"}) = parsed("{granularity: selective, modules: [" + kNonsense + "]}");
  const Schema schema = schema_of("job")["properties"]["recompute"]["properties"]["modules"]["items"]["enum"];
  CHECK(known_in(job_error(job)) == schema.get<std::set<std::string>>());
}

TEST_CASE("schema and reader need the same keys") {
  const Schema schema = schema_of("job");
  const SchemaValidator validator(schema);
  int left_out = 0;
  int needed = 0;
  walk(schema, {}, [&](const Path& path, const Schema&) {
    if (path.empty()) return;
    YamlNode job = full_job();
    const Path parent(path.begin(), path.end() - 1);
    std::erase_if(node_at(job, parent).entries, [&](const YamlEntry& entry) { return entry.key == path.back(); });
    INFO(shown(path) << "\n" << job_error(job));
    CHECK(validator.accepts(json_of(job)) == job_error(job).empty());
    ++left_out;
    if (!job_error(job).empty()) ++needed;
  });
  CHECK(left_out > 200);
  CHECK(needed > 60);
}

TEST_CASE("what has the wrong kind for the reader has it for the schema, and the other way round") {
  const Schema schema = schema_of("job");
  const SchemaValidator validator(schema);
  const std::vector<std::string> probes = {kNonsense, "-1",  "0",     "1",   "1.5", "1e3",    "true", "auto",
                                           "3GiB",    "3us", "3GB/s", "1 x", "[1]", "{q: 1}", "~"};
  int both_refused = 0;
  int both_took = 0;
  int only_reader = 0;
  walk(schema, {}, [&](const Path& path, const Schema&) {
    if (path.empty()) return;
    for (const std::string& probe : probes) {
      YamlNode job = full_job();
      make_room_for(job, path);
      node_at(job, path) = probe == "~" ? YamlNode{} : parsed("k: " + probe).entries.front().value;
      const std::string error = job_error(job);
      const std::string fault = validator.fault_of(json_of(job));
      INFO(shown(path) << ": " << probe << "\nreader: " << error << "\nschema: " << fault);
      if (error.empty()) {
        CHECK(fault.empty());
        ++both_took;
      } else if (is_structural(error)) {
        CHECK(!fault.empty());
      }
      if (!error.empty()) ++(fault.empty() ? only_reader : both_refused);
    }
  });
  CHECK(both_took > 300);
  CHECK(both_refused > 1500);
  // Sizes that do not go together, a name that is in no library, a rate of zero: not a schema's to say.
  CHECK(only_reader < both_refused / 4);
}

TEST_CASE("damaged files: the schema refuses nothing that the reader takes, and every wrong key, kind and word") {
  for (const FileKind& kind : kinds()) {
    const SchemaValidator validator(schema_of(kind.name));
    std::vector<std::string> texts;
    for (const std::string& name : library_names(kind.library))
      texts.push_back(contents(library_path(kind.library, name)));
    std::mt19937 random(20261130);
    int structural = 0;
    int taken = 0;
    for (int i = 0; i < 1000; ++i) {
      const std::string text = mutate(texts[static_cast<std::size_t>(i) % texts.size()], random);
      YamlNode node;
      if (!error_of([&] { node = parsed(text); }).empty()) continue;
      const std::string error = error_of([&] { kind.read(node); });
      const std::string fault = validator.fault_of(json_of(node));
      INFO(kind.name << "\nreader: " << error << "\nschema: " << fault << "\n" << text);
      if (error.empty()) {
        CHECK(fault.empty());
        ++taken;
      } else if (is_structural(error)) {
        CHECK(!fault.empty());
        ++structural;
      }
    }
    CHECK(taken > 50);
    CHECK(structural > 50);
  }
}
