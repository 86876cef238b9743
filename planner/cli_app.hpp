// The command line as CLI11 sees it: every command with its options bound to a struct of cli_options.hpp. Internal to
// the cli_app_*.cpp, cli_options.cpp and what is written from the whole of it (completions, man pages): no other file
// includes CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "planner/cli_options.hpp"
#include "reports/command_line.hpp"

namespace ebb::cli {

/// Options point into it: it stays where it is.
struct CommandLine {
  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine() = default;

  CLI::App app;
  Everywhere everywhere;
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
/// One of these words.
void add_choice(CLI::App& command, const char* names, std::optional<std::string>& value, const char* help,
                const char* type, const std::vector<std::string>& words);
void add_json(CLI::App& command, bool& json);
void add_settings(CLI::App& command, Settings& settings);

/// Help, manual and completions are written from it.
reports::CommandTree tree_of(const CommandLine& line);

}  // namespace ebb::cli
