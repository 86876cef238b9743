// The command line as CLI11 sees it: every command with its options bound to a struct of cli_options.hpp. Internal to
// the cli_app_*.cpp, cli_options.cpp and what is written from the whole of it (completions, man pages): no other file
// includes CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "planner/cli_options.hpp"

namespace ebb::cli {

/// Options point into it: it stays where it is.
struct CommandLine {
  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine() = default;

  CLI::App app;
  std::optional<Command> chosen;  // after app.parse()

  PlanOptions plan;
  SimulateOptions simulate;
  ExplainOptions explain;
  CheckOptions check;
  LayoutOptions layout;
  FitOptions fit;
  SweepOptions sweep;
  ImportOptions import_options;
  LearnOptions learn;
  ScoreOptions score;
  DiffOptions diff;
  ReportOptions report;
  DoctorOptions doctor;
  LibraryOptions library;
  SchemaOptions schema;
  std::string shell;                     // of `completion`
  std::optional<std::string> man_entry;  // of `man`: a command
};

/// plan, simulate, explain, fit, sweep, check, layout: what starts from a job.
void add_job_commands(CommandLine& line);
/// import, learn, score, diff, report, doctor, models, clusters, policies, schema, completion, man, replay.
void add_other_commands(CommandLine& line);

void add_job(CLI::App& command, std::string& job);
void add_text(CLI::App& command, const char* names, std::optional<std::string>& value, const char* help,
              const char* type);
void add_json(CLI::App& command, bool& json);
void add_settings(CLI::App& command, Settings& settings);

/// What the shell needs to complete commands and options: bash, zsh or fish. InputError for another.
std::string completion_of(const CLI::App& app, const std::string& shell);
/// roff of the whole program or of one command. InputError for an unknown one.
std::string man_page_of(const CLI::App& app, const std::optional<std::string>& command);

}  // namespace ebb::cli
