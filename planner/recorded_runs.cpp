#include "planner/recorded_runs.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/json_fields.hpp"
#include "models/text_file.hpp"

namespace ebb {

namespace {

constexpr std::int64_t kMostFileBytes = 64 << 20;
constexpr std::int64_t kMostGpus = 1 << 18;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::int64_t kOneNode = 8;

/// A value as it would stand on the command line.
std::string word_of(const Json& value) { return value.is_string() ? value.get<std::string>() : dump(value); }

/// `true` is a flag, `false` none at all, a list several words.
void add_argument(const std::string& name, const Json& value, const Place& place, MegatronArguments& arguments) {
  if (value.is_boolean() && !value.get<bool>()) return;
  MegatronArgument argument{name, {}, place};
  if (value.is_array())
    for (const Json& word : value) argument.values.push_back(word_of(word));
  else if (!value.is_boolean() && !value.is_null())
    argument.values.push_back(word_of(value));
  arguments.arguments.push_back(std::move(argument));
}

const Json& object_at(const Json& json, const char* key, const JsonValue& of) {
  of.at(key);  // rejects when it is missing
  const Json& value = json[key];
  if (!value.is_object()) of.at(key).reject("expected an object");
  return value;
}

std::optional<std::int64_t> gpus_of(const JsonValue& of, const std::string& id) {
  for (const char* key : {"gpus", "world_size"})
    if (of.has(key)) return of.at(key).integer(1, kMostGpus);
  if (id.find("release") != std::string::npos) return std::nullopt;
  return kOneNode;
}

RecordedRun run_of(const Json& json, const JsonValue& of, const std::string& file) {
  RecordedRun run;
  run.id = of.at("id").text();
  run.gpu = of.at("gpu").text();
  run.gpus = gpus_of(of, run.id);
  run.arguments.file = file;
  run.arguments.gpus = run.gpus;
  const Place place{file + " (" + run.id + ")"};
  for (const auto& [name, value] : object_at(json, "args", of).items()) add_argument(name, value, place, run.arguments);
  if (of.has("env"))
    for (const auto& [name, value] : object_at(json, "env", of).items())
      run.arguments.environment[name] = word_of(value);
  const JsonValue measured = of.at("measured");
  run.allocated = Bytes{measured.at("allocated_bytes_last").integer(1, kMostBytes)};
  run.peak = Bytes{measured.at("max_allocated_bytes_last").integer(1, kMostBytes)};
  if (measured.has("iteration_s_median")) {
    run.iteration = Seconds{measured.at("iteration_s_median").number()};
    if (!(run.iteration->value > 0)) measured.at("iteration_s_median").reject("is not positive");
  }
  return run;
}

}  // namespace

std::vector<RecordedRun> load_recorded_runs(const std::string& file) {
  const Json json = parse_json(read_text_file(file, kMostFileBytes), file);
  const JsonValue cases = JsonValue(json, "", file).at("cases");
  std::vector<RecordedRun> runs;
  for (std::size_t i = 0; i < cases.size(); ++i) runs.push_back(run_of(json["cases"][i], cases[i], file));
  return runs;
}

}  // namespace ebb
