#include "planner/cli_options.hpp"

#include <algorithm>
#include <sstream>

#include "models/errors.hpp"
#include "models/nearest.hpp"
#include "planner/cli_app.hpp"

namespace ebb::cli {

namespace {

[[noreturn]] void reject(const CLI::ParseError& error) {
  std::string what = error.what();
  while (!what.empty() && (what.back() == '\n' || what.back() == '.')) what.pop_back();
  for (char& c : what)
    if (c == '\n') c = ' ';
  throw InputError(Place{}, what, "see ebb --help");
}

/// CLI11 would only say that a command is missing.
void check_command_word(const CLI::App& app, std::span<const char* const> arguments) {
  if (arguments.size() < 2 || arguments[1][0] == '-') return;
  const std::string word = arguments[1];
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(command->get_name());
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  throw InputError(Place{}, "unknown command \"" + word.substr(0, 40) + "\"", did_you_mean(word, known, "commands"));
}

}  // namespace

void add_job(CLI::App& command, std::string& job) {
  command.add_option("JOB", job, "job file, Megatron-LM launch script or arguments, or config.json")
      ->required()
      ->type_name("");
}

void add_text(CLI::App& command, const char* names, std::optional<std::string>& value, const char* help,
              const char* type) {
  command.add_option(names, value, help)->type_name(type);
}

void add_json(CLI::App& command, bool& json) { command.add_flag("--json", json, "print one JSON document"); }

void add_settings(CLI::App& command, Settings& settings) {
  command.add_option("--set", settings, "change a key of the job, e.g. parallel.tensor=4; several times")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

CommandLine::CommandLine()
    : app("Ebb: plans and predicts optimizer-state offloading for Megatron-LM training jobs.", "ebb") {
  app.set_version_flag("--version", "ebb " EBB_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  ebb plan models/jobs/llama3-8b-hgx-h200.yaml --budget 139GiB\n"
      "  ebb simulate models/jobs/llama3-8b-hgx-h200.yaml --policy chunked --chunk-numel 1e9\n"
      "  ebb layout models/jobs/llama3-8b-hgx-h200.yaml --rank 7\n"
      "  ebb diff predicted.json measured.json --fail-above 3%\n"
      "Exit codes: 0 answered, 1 nothing fits or a diff above its threshold, 2 bad input, 3 the machine failed (files, "
      "memory).");
  add_job_commands(*this);
  add_other_commands(*this);
}

Command parse(std::span<const char* const> arguments) {
  CommandLine line;
  check_command_word(line.app, arguments);
  if (arguments.size() >= 2 && std::string_view(arguments[1]) == "replay")
    return ReplayOptions{{arguments.begin() + 2, arguments.end()}};
  try {
    line.app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) reject(error);
    std::ostringstream text;
    line.app.exit(error, text, text);
    return Print{text.str()};
  }
  return *line.chosen;
}

}  // namespace ebb::cli
