// The command line as a whole, and the options of `run`, `checkpoint` and `calibrate`.
#include "replay/cli_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "replay/cli_words.hpp"
#include "reports/trace.hpp"

namespace ebb::replay::cli {

namespace {

void add_run(CLI::App& app, RunOptions& o, Words& words) {
  CLI::App* command = app.add_subcommand("run", "Execute plans on this machine's GPUs: times, memory, numbers");
  command->add_option("PLAN", o.plans, "plan files, written with ebb simulate JOB --policy P -o FILE")
      ->required()
      ->type_name("");
  add_text(*command, "-o", words.output, "write the measured timeline; of several plans into this directory", "FILE");
  add_text(*command, "--trace", words.trace, "also write a trace: .pftrace (Perfetto) or .json (Chrome)", "FILE");
  add_choice(*command, "--device", words.device, "what runs it; the cpu computes the numbers alone (default gpu)",
             "WHICH", {"gpu", "cpu"});
  add_text(*command, "--devices", words.devices, "one GPU for each rank of the plan, e.g. 0,1", "LIST");
  add_text(*command, "--warmups", words.warmups, "steps before the measured ones (3)", "N");
  add_text(*command, "--repeats", words.repeats, "measured steps (5)", "N");
  add_text(*command, "--seed", words.seed, "of parameters and gradients (1)", "S");
  command->add_flag("--digests", o.execute.training.digests, "check sums of all state after every step");
  command->add_flag("--graph", o.execute.graph, "capture into CUDA graphs what lies between host waits");
  add_without(*command, "--no-compute", o.execute.compute, "leave out the products that stand in for the model");
  add_without(*command, "--no-framework-time", o.execute.framework_time, "leave out the framework's own CPU time");
  add_without(*command, "--no-gate", o.execute.gate,
              "start without holding the streams: for tools that serialise kernels");
  command->add_flag("--alone", o.execute.alone, "leave out collectives with ranks that are not in the file");
  add_choice(*command, "--slow", words.slow, "delay every op of one stream", "STREAM", stream_words());
  command->add_flag("--poison", o.execute.poison, "fill device memory with NaN at every allocation");
  command->add_flag("--json", o.json, "print one JSON document");
  command->footer(
      "Examples: ebb-replay run plan.json -o measured.json --devices 0   # GPU\n"
      "          ebb-replay run plan.json --device cpu --digests");
}

void add_calibrate(CLI::App& app, CalibrateOptions& o, Words& words) {
  CLI::App* command = app.add_subcommand("calibrate", "Measure this machine and write it as a cluster for ebb");
  add_text(*command, "-o", words.output, "the cluster's YAML", "FILE");
  add_text(*command, "--base", words.base, "cluster whose other values stay (default: the nearest in the library)",
           "CLUSTER");
  add_text(*command, "--seconds", words.seconds, "about as long as measuring takes (60)", "S");
  add_text(*command, "--devices", words.devices, "GPUs to measure, e.g. 0,1 (all)", "LIST");
  add_text(*command, "--raw", words.raw, "also write the measurements", "FILE");
  add_text(*command, "--from", words.from, "fit these measurements instead of measuring", "FILE");
  command->add_flag("--json", o.json, "print one JSON document");
  command->footer("Example: ebb-replay calibrate -o cluster.yaml   # GPU");
}

void add_checkpoint(CLI::App& app, CheckpointOptions& o) {
  CLI::App* command = app.add_subcommand("checkpoint", "What is in a checkpoint, and whether it is whole");
  command->add_option("PATH", o.path, "a checkpoint, or a directory of them: its newest")->required()->type_name("");
  add_without(*command, "--no-hashes", o.hashes, "check sizes and headers, not every byte");
  command->add_flag("--json", o.json, "print one JSON document");
  command->footer("Example: ebb-replay checkpoint checkpoints");
}

void complete(RunOptions& o, const Words& words) {
  constexpr std::int64_t kMostSteps = 1'000'000;
  o.output = words.output;
  o.trace = words.trace;
  o.device = device_of(words.device, Device::gpu);
  o.execute.devices = devices_of(words.devices);
  o.execute.slow = stream_of(words.slow);
  o.execute.warmups = static_cast<int>(count(words.warmups, "--warmups", o.execute.warmups, 0, kMostSteps));
  o.execute.repeats = static_cast<int>(count(words.repeats, "--repeats", o.execute.repeats, 1, kMostSteps));
  o.execute.training.seed = static_cast<std::uint64_t>(count(words.seed, "--seed", 1, 0, INT64_MAX));
  for (const auto& [option, file] : {std::pair("-o", o.output), std::pair("--trace", o.trace)})
    if (o.device == Device::cpu && file)
      throw InputError({.file = option}, "the CPU computes the plan's numbers and has no times to write",
                       "leave it out, or run with --device gpu");
  if (o.trace) reports::trace_format_of(*o.trace);
  if (o.trace && o.plans.size() > 1)
    throw InputError({.file = "--trace"}, "a trace is of one plan", "run one plan at a time");
}

void complete(CalibrateOptions& o, const Words& words) {
  if (!words.output) throw InputError({.file = "-o"}, "where is the cluster to be written?", "e.g. -o cluster.yaml");
  o.output = *words.output;
  o.base = words.base;
  if (words.raw) o.raw = *words.raw;
  if (words.from) o.from = *words.from;
  if (words.seconds) o.seconds = parse_seconds(*words.seconds, {.file = "--seconds"}).value;
  o.devices = devices_of(words.devices);
}

/// Everything about the program but its commands.
const reports::ProgramFacts& facts() {
  static const reports::ProgramFacts facts = {
      "ebb-replay " EBB_VERSION,
      "the machine failed (CUDA, NCCL, files, memory)",
      {{"EBB_LIBRARY", "the directory of models, clusters and jobs, instead of Ebb's own"},
       {"CUDA_VISIBLE_DEVICES", "the GPUs that there are, as CUDA numbers them"}},
      {}};
  return facts;
}

/// `completion`, `man`, `help`: from the command line itself.
void add_self(CLI::App& app, Words& words) {
  CLI::App* completion = app.add_subcommand("completion", "Completion of commands and options for a shell");
  reports::limit_to(*completion->add_option("SHELL", words.shell, "which shell")->required(), "SHELL",
                    {"bash", "zsh", "fish"});
  completion->footer("Example: source <(ebb-replay completion bash)");
  CLI::App* man = app.add_subcommand("man", "The manual page of ebb-replay or of one command");
  man->add_option("COMMAND", words.man_entry, "a command")->type_name("COMMAND");
  man->footer("Example: ebb-replay man run > ebb-replay-run.1");
  app.add_subcommand("help", "What --help of a command says")
      ->add_option("COMMAND", words.man_entry, "a command")
      ->type_name("COMMAND");
}

void add_everywhere(CLI::App& app, Talk& talk) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    if (command->get_name() == "help") continue;
    CLI::Option* quiet = command->add_flag("-q,--quiet", talk.quiet, "no progress and no remarks");
    CLI::Option* verbose =
        command->add_flag("-v,--verbose", talk.verbose, "say which files are read and how long each part takes");
    quiet->excludes(verbose);
    for (CLI::Option* option : {quiet, verbose}) option->group("Everywhere");
  }
}

std::string joined(std::span<const char* const> arguments) {
  std::string text = "ebb-replay";
  for (std::size_t i = 1; i < arguments.size(); ++i) text.append(" ").append(arguments[i]);
  return text;
}

}  // namespace

CommandWords parse(std::span<const char* const> arguments) {
  CLI::App app("Executes Ebb's plans on real GPUs, proves their numbers, and calibrates the simulator", "ebb-replay");
  reports::prepare(app, facts());
  app.require_subcommand(1);
  RunOptions run;
  EquivalenceOptions equivalence;
  TrainOptions train;
  CheckpointOptions checkpoint;
  CalibrateOptions calibrate;
  Words words;
  Talk talk;
  add_run(app, run, words);
  add_equivalence(app, equivalence, words);
  add_train(app, train, words);
  add_checkpoint(app, checkpoint);
  add_calibrate(app, calibrate, words);
  add_self(app, words);
  add_everywhere(app, talk);
  reports::name_commands(app);
  app.footer(
      "Examples: ebb simulate small.yaml --policy chunked --chunk-numel 1e5 -o plan.json\n"
      "          ebb-replay run plan.json --device cpu\n"
      "          ebb-replay equivalence small.yaml --policy chunked --chunk-numel 1e5\n"
      "          ebb simulate small.yaml --policy chunked --chunk-numel 1e5 --life -o life.json\n"
      "          ebb-replay train life.json --steps 4 --checkpoint checkpoints --device cpu\n"
      "          ebb-replay checkpoint checkpoints\n"
      "          ebb-replay calibrate -o cluster.yaml   # GPU\n"
      "Exit 1: not equivalent");
  const std::vector<std::string> given(arguments.begin() + std::min<std::size_t>(arguments.size(), 1), arguments.end());
  if (const std::optional<std::string> text = reports::parse_words(app, given)) return {Print{*text}, talk};
  if (app.got_subcommand("completion"))
    return {Print{reports::completion_of(reports::tree_of(app, facts()), *words.shell)}, talk};
  if (app.got_subcommand("man"))
    return {Print{reports::man_page_of(reports::tree_of(app, facts()), words.man_entry)}, talk};
  if (app.got_subcommand("run")) {
    complete(run, words);
    return {run, talk};
  }
  if (app.got_subcommand("checkpoint")) return {checkpoint, talk};
  if (app.got_subcommand("equivalence")) {
    complete(equivalence, words);
    return {equivalence, talk};
  }
  if (app.got_subcommand("train")) {
    complete(train, words);
    return {train, talk};
  }
  complete(calibrate, words);
  calibrate.command = joined(arguments);
  return {calibrate, talk};
}

}  // namespace ebb::replay::cli
