// Commands that do not start from a job alone: files of other runs, this machine, the library, the program itself.
#include <fmt/format.h>

#include "models/schema/schema.hpp"
#include "planner/cli_app.hpp"
#include "reports/schema.hpp"

namespace ebb::cli {

namespace {

void add_import(CommandLine& line) {
  ImportOptions& o = line.import_options;
  CLI::App* command =
      line.app.add_subcommand("import", "A job file from Megatron-LM arguments or a Hugging Face config");
  reports::limit_to(*command->add_option("KIND", o.kind, "what FILE is")->required(), "KIND", {"megatron", "hf"});
  command->add_option("FILE", o.file, "launch script, argument list, test-case or recipe YAML; or config.json")
      ->required()
      ->type_name("");
  add_text(*command, "--cluster", o.cluster, "cluster of the job (default hgx-h100)", "CLUSTER");
  add_text(*command, "--gpus", o.gpus, "number of GPUs, where the file does not say", "N");
  command->footer(
      "Examples: ebb import megatron train.sh --cluster hgx-h200 > imported.yaml\n"
      "          ebb import hf config.json --gpus 8 > imported.yaml");
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
  command->footer(
      "Example: ebb diff predicted.json measured.json --fail-above 3%\n"
      "Exit 1: a step is off by more than --fail-above");
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
  // In a container that has its host mounted, and in tests.
  add_text(*command, "--root", o.root, "read DIR/proc and DIR/sys instead of this machine's", "DIR");
  command->get_option("--root")->group("");
  add_settings(*command, o.settings);
  add_json(*command, o.json);
  command->footer(
      "Examples: ebb doctor\n"
      "          ebb doctor models/jobs/llama3-8b-hgx-h200.yaml    # GPU: on the host that trains\n"
      "Exit 1: something stands against the plan");
  command->callback([&line] { line.chosen = line.doctor; });
}

/// `ebb models`, `ebb models list`, `ebb models show MODEL`.
void add_library(CommandLine& line, const char* kind, const char* help, const char* one, const char* name) {
  CLI::App* command = line.app.add_subcommand(kind, help);
  CLI::App* list = command->add_subcommand("list", "Names, and what each is");
  CLI::App* show = command->add_subcommand("show", "One of them, whole");
  const bool files = std::string_view(one) != "POLICY";
  show->add_option(one, line.library.name, files ? "its name in the library, or a file" : "its name")
      ->required()
      ->type_name(one);
  add_json(*list, line.library.json);
  add_json(*show, line.library.json);
  command->require_subcommand(0, 1);
  command->footer(fmt::format("Examples: ebb {0}\n          ebb {0} show {1}", kind, name));
  list->footer(fmt::format("Example: ebb {} list --json", kind));
  show->footer(fmt::format("Example: ebb {} show {}", kind, name));
  command->callback([&line, kind] {
    line.library.kind = kind;
    line.chosen = line.library;
  });
}

/// For help and completion; run_schema() itself says what is wrong with another.
std::string schema_words() {
  std::string words = "NAME:";
  for (const std::string_view file : file_schema_names()) words.append(file).append("|");
  words += "answer";
  for (const std::string_view answer : reports::answer_schema_names()) words.append("|answer-").append(answer);
  return words;
}

void add_self(CommandLine& line) {
  CLI::App* schema = line.app.add_subcommand("schema", "The JSON Schema of a file that Ebb reads or writes");
  schema->add_option("NAME", line.schema.name, "which file or answer")->required()->type_name(schema_words());
  schema->footer("Example: ebb schema job > job.schema.json");
  schema->callback([&line] { line.chosen = line.schema; });

  CLI::App* completion = line.app.add_subcommand("completion", "Completion of commands and options for a shell");
  reports::limit_to(*completion->add_option("SHELL", line.shell, "which shell")->required(), "SHELL",
                    {"bash", "zsh", "fish"});
  completion->footer("Example: source <(ebb completion bash)");
  completion->callback([&line] { line.chosen = Print{reports::completion_of(tree_of(line), line.shell)}; });

  CLI::App* man = line.app.add_subcommand("man", "The manual page of ebb or of one command");
  man->add_option("COMMAND", line.man_entry, "a command")->type_name("COMMAND");
  man->footer(
      "Examples: ebb man > ebb.1\n"
      "          ebb man plan > ebb-plan.1");
  man->callback([&line] { line.chosen = Print{reports::man_page_of(tree_of(line), line.man_entry)}; });
}

}  // namespace

void add_other_commands(CommandLine& line) {
  add_import(line);
  add_learn(line);
  add_score(line);
  add_diff(line);
  add_report(line);
  add_doctor(line);
  add_library(line, "models", "Models of the library", "MODEL", "llama3-8b");
  add_library(line, "clusters", "Clusters of the library", "CLUSTER", "hgx-h200");
  add_library(line, "policies", "Policies: how state moves", "POLICY", "chunked");
  add_self(line);
  // For help and completion alone: parse() hands the arguments of both on.
  CLI::App* replay =
      line.app.add_subcommand("replay", "Run a plan on GPUs, prove it, calibrate: all arguments go to ebb-replay");
  replay->footer("Example: ebb replay --help");
  line.app.add_subcommand("help", "What --help of a command says")
      ->add_option("COMMAND", line.man_entry, "a command")
      ->type_name("COMMAND");
}

}  // namespace ebb::cli
