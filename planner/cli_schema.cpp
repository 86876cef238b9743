// `ebb schema NAME`: the JSON Schema of a file that Ebb reads or writes, or of an answer.
#include <string>
#include <vector>

#include "models/errors.hpp"
#include "models/nearest.hpp"
#include "models/schema/schema.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "reports/schema.hpp"

namespace ebb::cli {

namespace {

constexpr std::string_view kAnswer = "answer";

std::string schema_of(const std::string& name) {
  std::vector<std::string> known;
  for (const std::string_view file : file_schema_names()) {
    if (name == file) return file_schema(file);
    known.emplace_back(file);
  }
  if (name == kAnswer) return reports::any_answer_schema();
  known.emplace_back(kAnswer);
  for (const std::string_view answer : reports::answer_schema_names()) {
    known.push_back(std::string(kAnswer) + "-" + std::string(answer));
    if (name == known.back()) return reports::answer_schema(answer);
  }
  throw InputError({"ebb schema"}, "there is no schema of \"" + name.substr(0, 40) + "\"",
                   did_you_mean(name, known, "schemas"));
}

}  // namespace

int run_schema(const SchemaOptions& options) {
  write_stdout(schema_of(options.name));
  return 0;
}

}  // namespace ebb::cli
