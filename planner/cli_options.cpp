#include "planner/cli_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "planner/cli_app.hpp"
#include "planner/flags.hpp"

namespace ebb::cli {

namespace {

/// An option that an environment variable may stand for. Flags of the command line win over it, and it over the job
/// file.
struct Variable {
  const char* name;
  const char* option;
  const char* help;
  void (*check)(std::string_view value, const Place& place);  // where the message can still name the variable
};

void check_size(std::string_view value, const Place& place) { parse_bytes(value, place); }
void check_megatron(std::string_view value, const Place& place) { parse_megatron(value, place); }

constexpr std::array kVariables = {
    Variable{"EBB_BUDGET", "--budget", "device memory a GPU may use, where --budget does not say", check_size},
    Variable{"EBB_HOST_BUDGET", "--host-budget",
             "memory of a host that the job may use, where --host-budget does not say", check_size},
    Variable{"EBB_MEGATRON", "--megatron", "the Megatron-LM you run, where --megatron does not say", check_megatron}};

const reports::ProgramFacts& facts() {
  static const reports::ProgramFacts facts = [] {
    reports::ProgramFacts f;
    f.version = "ebb " EBB_VERSION;
    f.failure = "the machine failed (files, memory)";
    f.environment.push_back({"EBB_LIBRARY", "the directory of models, clusters and jobs, instead of Ebb's own"});
    for (const Variable& variable : kVariables) f.environment.push_back({variable.name, variable.help});
    f.environment.push_back({"NO_COLOR", "set to anything: no colour, as --no-color"});
    f.environment.push_back({"TERM", "\"dumb\" or unset: no colour and no progress"});
    f.files = {{"llm/*.yaml", "models, in the library"},
               {"clusters/*.yaml", "hardware, in the library: every figure with its source"},
               {"jobs/*.yaml", "examples of jobs, in the library"}};
    return f;
  }();
  return facts;
}

bool takes(const CLI::App& command, const char* name) { return command.get_option_no_throw(name) != nullptr; }

void add_everywhere(CLI::App& app, Everywhere& o) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    if (command->get_name() == "replay" || command->get_name() == "help") continue;
    std::vector<CLI::Option*> options = {
        command->add_flag("-q,--quiet", o.quiet, "no progress and no remarks"),
        command->add_flag("-v,--verbose", o.verbose, "say which files are read and how long each part takes"),
        command->add_flag("--no-color", o.no_colour, "no colour")};
    options[0]->excludes(options[1]);
    if (takes(*command, "JOB") && (takes(*command, "--budget") || takes(*command, "--policy")))
      options.push_back(
          command->add_flag("--print-config", o.print_config, "only print the job with all options in it, as YAML"));
    for (CLI::Option* option : options) option->group("Everywhere");
    add_everywhere(*command, o);
  }
}

/// The arguments with what environment variables add to them.
std::vector<std::string> with_environment(const CLI::App& app, std::vector<std::string> arguments) {
  if (arguments.empty()) return arguments;
  const std::vector<const CLI::App*> commands =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == arguments.front(); });
  if (commands.empty()) return arguments;
  for (const Variable& variable : kVariables) {
    const char* value = std::getenv(variable.name);
    const auto is_it = [&variable](const std::string& word) {
      return word == variable.option || word.starts_with(fmt::format("{}=", variable.option));
    };
    const bool given = std::any_of(arguments.begin(), arguments.end(), is_it);
    // A plan says itself what it may use (ebb simulate --plan).
    if (std::any_of(arguments.begin(), arguments.end(), [](const auto& word) { return word.starts_with("--plan"); }))
      continue;
    if (value == nullptr || *value == '\0' || given || !takes(*commands.front(), variable.option)) continue;
    variable.check(value, Place{variable.name});
    arguments.insert(arguments.begin() + 1, fmt::format("{}={}", variable.option, value));
  }
  return arguments;
}

}  // namespace

void add_job(CLI::App& command, std::string& job) {
  command.add_option("JOB", job, "job file, Megatron-LM launch script or arguments, or config.json")
      ->required()
      ->type_name("JOB");
}

void add_text(CLI::App& command, const char* names, std::optional<std::string>& value, const char* help,
              const char* type) {
  command.add_option(names, value, help)->type_name(type);
}

void add_choice(CLI::App& command, const char* names, std::optional<std::string>& value, const char* help,
                const char* type, const std::vector<std::string>& words) {
  reports::limit_to(*command.add_option(names, value, help), type, words);
}

void add_json(CLI::App& command, bool& json) { command.add_flag("--json", json, "print one JSON document"); }

void add_settings(CLI::App& command, Settings& settings) {
  command.add_option("--set", settings, "change a key of the job, e.g. parallel.tensor=4; several times")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

reports::CommandTree tree_of(const CommandLine& line) { return reports::tree_of(line.app, facts()); }

CommandLine::CommandLine()
    : app("Ebb plans and predicts optimizer-state offloading for Megatron-LM training jobs", "ebb") {
  reports::prepare(app, facts());
  app.require_subcommand(1);
  add_job_commands(*this);
  add_other_commands(*this);
  reports::name_commands(app);
  add_everywhere(app, everywhere);
  app.footer(
      "Examples: ebb plan models/jobs/llama3-8b-hgx-h200.yaml --budget 139GiB\n"
      "          ebb simulate models/jobs/llama3-8b-hgx-h200.yaml --policy chunked --chunk-numel 1e9\n"
      "          ebb explain models/jobs/llama3-8b-hgx-h200.yaml\n"
      "Exit 1: nothing fits, or a diff is above its threshold");
}

CommandWords parse(std::span<const char* const> arguments) {
  CommandLine line;
  std::vector<std::string> words(arguments.begin() + std::min<std::size_t>(arguments.size(), 1), arguments.end());
  if (!words.empty() && words.front() == "replay") return {ReplayOptions{{words.begin() + 1, words.end()}}, {}};
  words = with_environment(line.app, std::move(words));
  if (const std::optional<std::string> text = reports::parse_words(line.app, words)) return {Print{*text}, {}};
  return {*line.chosen, line.everywhere};
}

}  // namespace ebb::cli
