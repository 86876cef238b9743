// Commands that do not start from a job alone: files of other runs, this machine, the library, the program itself.
#include "planner/cli_app.hpp"

namespace ebb::cli {

namespace {

void add_import(CommandLine& line) {
  ImportOptions& o = line.import_options;
  CLI::App* command =
      line.app.add_subcommand("import", "A job file from Megatron-LM arguments or a Hugging Face config");
  command->add_option("KIND", o.kind, "megatron or hf")->required()->type_name("");
  command->add_option("FILE", o.file, "launch script, argument list, test-case or recipe YAML; or config.json")
      ->required()
      ->type_name("");
  add_text(*command, "--cluster", o.cluster, "cluster of the job (default hgx-h100)", "NAME");
  add_text(*command, "--gpus", o.gpus, "number of GPUs, where the file does not say", "N");
  command->footer("Example: ebb import megatron train.sh --cluster hgx-h200 > job.yaml");
  command->callback([&line] { line.chosen = line.import_options; });
}

void add_learn(CommandLine& line) {
  LearnOptions& o = line.learn;
  CLI::App* command = line.app.add_subcommand("learn", "A job with the figures of its own training log");
  command->add_option("LOG", o.log, "what a Megatron-LM run printed")->required()->type_name("");
  add_job(*command, o.job);
  add_text(*command, "-o", o.job_file, "where the job goes instead of standard output", "FILE");
  add_settings(*command, o.settings);
  add_json(*command, o.json);
  command->footer("Example: ebb learn train.log job.yaml -o learned.yaml");
  command->callback([&line] { line.chosen = line.learn; });
}

void add_score(CommandLine& line) {
  ScoreOptions& o = line.score;
  CLI::App* command = line.app.add_subcommand("score", "Predictions against recorded runs, case by case");
  command->add_option("FILE", o.file, "recorded cases (JSON)")->required()->type_name("");
  add_json(*command, o.json);
  command->footer("Example: ebb score tests/data/megatron/recorded.json");
  command->callback([&line] { line.chosen = line.score; });
}

void add_diff(CommandLine& line) {
  DiffOptions& o = line.diff;
  CLI::App* command = line.app.add_subcommand("diff", "A prediction against a run: how far off, and which assumption");
  command->add_option("PREDICTED", o.predicted, "timeline from ebb simulate --timeline")->required()->type_name("");
  command->add_option("MEASURED", o.measured, "timeline from ebb-replay run of the same plan")
      ->required()
      ->type_name("");
  command->add_option("--fail-above", o.fail_above, "exit 1 when a step is off by more (default 5%)")
      ->type_name("PERCENT");
  add_json(*command, o.json);
  command->footer("Example: ebb diff predicted.json measured.json --fail-above 3%");
  command->callback([&line] { line.chosen = line.diff; });
}

void add_report(CommandLine& line) {
  ReportOptions& o = line.report;
  CLI::App* command = line.app.add_subcommand("report", "Documents and timelines of earlier runs as one HTML page");
  command->add_option("FILES", o.files, "--json output of ebb, and timelines")->required()->type_name("");
  command->add_option("-o", o.html_file, "the page")->required()->type_name("FILE");
  command->footer("Example: ebb report predicted.json measured.json -o report.html");
  command->callback([&line] { line.chosen = line.report; });
}

void add_doctor(CommandLine& line) {
  DoctorOptions& o = line.doctor;
  CLI::App* command = line.app.add_subcommand("doctor", "This machine, and what it means for a job's plan");
  command->add_option("JOB", o.job, "job file, Megatron-LM launch script or arguments, or config.json")->type_name("");
  add_text(*command, "--checkpoint", o.checkpoint, "where checkpoints will be saved", "DIR");
  add_settings(*command, o.settings);
  add_json(*command, o.json);
  command->footer("Example: ebb doctor models/jobs/llama3-8b-hgx-h200.yaml");
  command->callback([&line] { line.chosen = line.doctor; });
}

/// `ebb models`, `ebb models list`, `ebb models show NAME`.
void add_library(CommandLine& line, const char* kind, const char* help, const char* example) {
  CLI::App* command = line.app.add_subcommand(kind, help);
  CLI::App* list = command->add_subcommand("list", "names, and what each is");
  CLI::App* show = command->add_subcommand("show", "one of them, whole");
  show->add_option("NAME", line.library.name, "its name")->required()->type_name("");
  add_json(*list, line.library.json);
  add_json(*show, line.library.json);
  command->require_subcommand(0, 1);
  command->footer(example);
  command->callback([&line, kind] {
    line.library.kind = kind;
    line.chosen = line.library;
  });
}

void add_self(CommandLine& line) {
  CLI::App* schema = line.app.add_subcommand("schema", "The JSON Schema of a file that Ebb reads or writes");
  schema->add_option("NAME", line.schema.name, "job, model, cluster, plan, timeline or answer")
      ->required()
      ->type_name("");
  schema->footer("Example: ebb schema job");
  schema->callback([&line] { line.chosen = line.schema; });

  CLI::App* completion = line.app.add_subcommand("completion", "Completion of commands and options for a shell");
  completion->add_option("SHELL", line.shell, "bash, zsh or fish")->required()->type_name("");
  completion->footer("Example: ebb completion bash");
  completion->callback([&line] { line.chosen = Print{completion_of(line.app, line.shell)}; });

  CLI::App* man = line.app.add_subcommand("man", "The manual page of ebb or of one command");
  man->add_option("COMMAND", line.man_entry, "a command")->type_name("");
  man->footer("Example: ebb man plan");
  man->callback([&line] { line.chosen = Print{man_page_of(line.app, line.man_entry)}; });
}

}  // namespace

void add_other_commands(CommandLine& line) {
  add_import(line);
  add_learn(line);
  add_score(line);
  add_diff(line);
  add_report(line);
  add_doctor(line);
  add_library(line, "models", "Models of the library", "Example: ebb models show llama3-8b");
  add_library(line, "clusters", "Clusters of the library", "Example: ebb clusters show hgx-h200");
  add_library(line, "policies", "Policies: how state moves", "Example: ebb policies show chunked");
  add_self(line);
  // For `ebb --help` alone: parse() hands its arguments on unread.
  line.app.add_subcommand("replay", "Run a plan on GPUs, prove it, calibrate: all arguments go to ebb-replay");
}

}  // namespace ebb::cli
