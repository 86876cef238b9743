#include "planner/cli_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "models/errors.hpp"
#include "models/nearest.hpp"

namespace ebb::cli {

namespace {

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

void add_chunking(CLI::App& command, CandidateOptions& o) {
  add_text(command, "--policy", o.policy, "resident, full-reload, chunked, windowed, cpu-adam or pipelined", "POLICY");
  add_text(command, "--chunk-numel", o.chunk_numel, "elements in a chunk, e.g. 1e9 (chunked, pipelined)", "N");
  add_text(command, "--chunk-size-mb", o.chunk_size_mb, "MiB of moments in a chunk, 0: all (windowed)", "M");
}

void add_budgets(CLI::App& command, std::optional<std::string>& device, std::optional<std::string>& host) {
  add_text(command, "--budget", device, "device memory a GPU may use, e.g. 60GiB", "SIZE");
  add_text(command, "--host-budget", host, "pinned memory a host may use, e.g. 1.5TiB", "SIZE");
}

void add_plan(CLI::App& app, PlanOptions& o) {
  CLI::App* command = app.add_subcommand("plan", "Which flags for this job: the fastest schedule that fits");
  add_job(*command, o.job);
  add_budgets(*command, o.budget, o.host_budget);
  add_text(*command, "--megatron", o.megatron, "the Megatron-LM you run: any, main, dev or pr6544", "WHICH");
  add_json(*command, o.json);
  add_text(*command, "-o", o.plan_file, "also write the recommended schedule of the slowest host as a plan", "FILE");
  add_text(*command, "--timeline", o.timeline_file, "also write when each of its operations would run", "FILE");
  command->footer("Example: ebb plan models/jobs/llama3-8b-hgx-h200.yaml --budget 139GiB --megatron dev");
}

void add_simulate(CLI::App& app, SimulateOptions& o) {
  CLI::App* command = app.add_subcommand("simulate", "Memory and time of one policy, phase by phase");
  CLI::Option* job =
      command->add_option("JOB", o.job, "job file, Megatron-LM launch script or arguments, or config.json")
          ->type_name("");
  add_text(*command, "--plan", o.plan, "instead of JOB: time of a plan file, on --cluster", "FILE");
  add_text(*command, "--cluster", o.cluster, "with --plan: whose figures, e.g. a calibrated cluster.yaml", "NAME");
  command->get_option("--plan")->excludes(job);
  command->get_option("--cluster")->needs("--plan");
  add_chunking(*command, o.candidate);
  add_text(*command, "--fraction", o.candidate.fraction,
           "part of the state that moves, 0 < F <= 1 (windowed, cpu-adam)", "F");
  add_text(*command, "--slots", o.candidate.slots, "device slots, 2 or more (pipelined)", "D");
  add_budgets(*command, o.budget, o.host_budget);
  add_json(*command, o.json);
  add_text(*command, "-o", o.plan_file, "also write the slowest host's schedule as a plan", "FILE");
  add_text(*command, "--timeline", o.timeline_file, "also write when each of its operations would run", "FILE");
  command->add_flag("--life", o.life, "plans of every part of the job's life: init, load, steps, skips, save");
  add_text(*command, "--gpus", o.gpus, "instead of the job's own number", "N");
  command->footer(
      "Examples: ebb simulate models/jobs/llama3-8b-hgx-h200.yaml --policy chunked --chunk-numel 1e9\n"
      "          ebb simulate --plan plan.json --cluster cluster.yaml --timeline predicted.json");
}

void add_layout(CLI::App& app, LayoutOptions& o) {
  CLI::App* command = app.add_subcommand("layout", "Shards, buckets and chunks of one rank's optimizer");
  add_job(*command, o.job);
  command->add_option("--rank", o.rank, "global rank")->required()->type_name("R");
  add_chunking(*command, o.candidate);
  add_json(*command, o.json);
  command->footer(
      "Example: ebb layout models/jobs/llama3-8b-hgx-h200.yaml --rank 7 --policy chunked --chunk-numel 1e8");
}

void add_import(CLI::App& app, ImportOptions& o) {
  CLI::App* command = app.add_subcommand("import", "A job file from Megatron-LM arguments or a Hugging Face config");
  command->add_option("KIND", o.kind, "megatron or hf")->required()->type_name("");
  command->add_option("FILE", o.file, "launch script, argument list, test-case or recipe YAML; or config.json")
      ->required()
      ->type_name("");
  add_text(*command, "--cluster", o.cluster, "cluster of the job (default hgx-h100)", "NAME");
  add_text(*command, "--gpus", o.gpus, "number of GPUs, where the file does not say", "N");
  command->footer("Example: ebb import megatron train.sh --cluster hgx-h200 > job.yaml");
}

void add_check(CLI::App& app, CheckOptions& o) {
  CLI::App* command = app.add_subcommand("check", "Every rule that this job breaks, with reason and cure");
  add_job(*command, o.job);
  add_chunking(*command, o.candidate);
  add_text(*command, "--fraction", o.candidate.fraction, "part of the state that moves (windowed, cpu-adam)", "F");
  add_text(*command, "--megatron", o.megatron, "the Megatron-LM you run: any, main, dev or pr6544", "WHICH");
  add_json(*command, o.json);
  command->footer("Example: ebb check models/jobs/llama3-8b-hgx-h200.yaml --policy chunked --chunk-numel 1e9");
}

void add_score(CLI::App& app, ScoreOptions& o) {
  CLI::App* command = app.add_subcommand("score", "Predictions against recorded runs, case by case");
  command->add_option("FILE", o.file, "recorded cases (JSON)")->required()->type_name("");
  add_json(*command, o.json);
  command->footer("Example: ebb score tests/data/megatron/recorded.json");
}

void add_explain(CLI::App& app, ExplainOptions& o) {
  CLI::App* command = app.add_subcommand("explain", "What a number consists of: the terms of a phase's peak");
  add_job(*command, o.job);
  add_text(*command, "--phase", o.phase, "init, load, first-step, forward, step, skip, save, ...", "PHASE");
  add_chunking(*command, o.candidate);
  add_text(*command, "--fraction", o.candidate.fraction, "part of the state that moves (windowed, cpu-adam)", "F");
  add_text(*command, "--slots", o.candidate.slots, "device slots, 2 or more (pipelined)", "D");
  add_budgets(*command, o.budget, o.host_budget);
  add_json(*command, o.json);
  command->footer("Example: ebb explain models/jobs/llama3-8b-hgx-h200.yaml --phase step");
}

void add_diff(CLI::App& app, DiffOptions& o) {
  CLI::App* command = app.add_subcommand("diff", "A prediction against a run: how far off, and which assumption");
  command->add_option("PREDICTED", o.predicted, "timeline from ebb simulate --timeline")->required()->type_name("");
  command->add_option("MEASURED", o.measured, "timeline from ebb-replay run of the same plan")
      ->required()
      ->type_name("");
  command->add_option("--fail-above", o.fail_above, "exit 1 when a step is off by more (default 5%)")
      ->type_name("PERCENT");
  add_json(*command, o.json);
  command->footer("Example: ebb diff predicted.json measured.json --fail-above 3%");
}

/// For `ebb --help` alone: parse() hands its arguments on unread.
void add_replay(CLI::App& app) {
  app.add_subcommand("replay", "Run a plan on GPUs, prove it, calibrate: all arguments go to ebb-replay");
}

[[noreturn]] void reject(const CLI::ParseError& error) {
  std::string what = error.what();
  while (!what.empty() && (what.back() == '\n' || what.back() == '.')) what.pop_back();
  for (char& c : what)
    if (c == '\n') c = ' ';
  throw InputError(Place{}, what, "see ebb --help");
}

/// CLI11 would only say that a command is missing.
void check_command_word(std::span<const char* const> arguments) {
  if (arguments.size() < 2 || arguments[1][0] == '-') return;
  const std::string word = arguments[1];
  const std::vector<std::string> known = {"plan",  "simulate", "layout", "import", "check",
                                          "score", "explain",  "diff",   "replay"};
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  throw InputError(Place{}, "unknown command \"" + word.substr(0, 40) + "\"", did_you_mean(word, known, "commands"));
}

}  // namespace

Command parse(std::span<const char* const> arguments) {
  check_command_word(arguments);
  if (arguments.size() >= 2 && std::string_view(arguments[1]) == "replay")
    return ReplayOptions{{arguments.begin() + 2, arguments.end()}};
  CLI::App app("Ebb: plans and predicts optimizer-state offloading for Megatron-LM training jobs.", "ebb");
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
  PlanOptions plan;
  SimulateOptions simulate;
  LayoutOptions layout;
  ImportOptions import_options;
  CheckOptions check;
  ScoreOptions score;
  ExplainOptions explain;
  DiffOptions diff;
  add_plan(app, plan);
  add_simulate(app, simulate);
  add_explain(app, explain);
  add_check(app, check);
  add_import(app, import_options);
  add_layout(app, layout);
  add_score(app, score);
  add_diff(app, diff);
  add_replay(app);
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) reject(error);
    std::ostringstream text;
    app.exit(error, text, text);
    return Print{text.str()};
  }
  if (app.got_subcommand("plan")) return plan;
  if (app.got_subcommand("simulate")) return simulate;
  if (app.got_subcommand("import")) return import_options;
  if (app.got_subcommand("check")) return check;
  if (app.got_subcommand("score")) return score;
  if (app.got_subcommand("explain")) return explain;
  if (app.got_subcommand("diff")) return diff;
  return layout;
}

}  // namespace ebb::cli
