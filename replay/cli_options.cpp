// The command line as a whole, and the options of `run`, `checkpoint` and `calibrate`.
#include "replay/cli_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "models/errors.hpp"
#include "models/nearest.hpp"
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
  add_text(*command, "--device", words.device, "gpu, or cpu: the numbers alone, computed by the reference", "WHICH");
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
  add_text(*command, "--slow", words.slow, "delay every op of one stream: host, compute, h2d, d2h or comm", "STREAM");
  command->add_flag("--poison", o.execute.poison, "fill device memory with NaN at every allocation");
  command->add_flag("--json", o.json, "print one JSON document");
  command->footer("Example: ebb-replay run plan.json -o measured.json --devices 0");
}

void add_calibrate(CLI::App& app, CalibrateOptions& o, Words& words) {
  CLI::App* command = app.add_subcommand("calibrate", "Measure this machine and write it as a cluster for ebb");
  add_text(*command, "-o", words.output, "the cluster's YAML", "FILE");
  add_text(*command, "--base", words.base, "cluster whose other values stay (default: the nearest in the library)",
           "NAME");
  add_text(*command, "--seconds", words.seconds, "about as long as measuring takes (60)", "S");
  add_text(*command, "--devices", words.devices, "GPUs to measure, e.g. 0,1 (all)", "LIST");
  add_text(*command, "--raw", words.raw, "also write the measurements", "FILE");
  add_text(*command, "--from", words.from, "fit these measurements instead of measuring", "FILE");
  command->add_flag("--json", o.json, "print one JSON document");
  command->footer("Example: ebb-replay calibrate -o cluster.yaml");
}

void add_checkpoint(CLI::App& app, CheckpointOptions& o) {
  CLI::App* command = app.add_subcommand("checkpoint", "What is in a checkpoint, and whether it is whole");
  command->add_option("PATH", o.path, "a checkpoint, or a directory of them: its newest")->required()->type_name("");
  add_without(*command, "--no-hashes", o.hashes, "check sizes and headers, not every byte");
  command->add_flag("--json", o.json, "print one JSON document");
  command->footer("Example: ebb-replay checkpoint checkpoints/");
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

[[noreturn]] void reject(const CLI::ParseError& error) {
  std::string what = error.what();
  while (!what.empty() && (what.back() == '\n' || what.back() == '.')) what.pop_back();
  std::replace(what.begin(), what.end(), '\n', ' ');
  throw InputError(Place{}, what, "see ebb-replay --help");
}

/// CLI11 would only say that a command is missing.
void check_command_word(std::span<const char* const> arguments) {
  if (arguments.size() < 2 || arguments[1][0] == '-') return;
  const std::string word = arguments[1];
  const std::vector<std::string> known = {"run", "equivalence", "train", "checkpoint", "calibrate"};
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  throw InputError(Place{}, fmt::format("unknown command \"{}\"", word.substr(0, 40)),
                   did_you_mean(word, known, "commands"));
}

std::string joined(std::span<const char* const> arguments) {
  std::string text = "ebb-replay";
  for (std::size_t i = 1; i < arguments.size(); ++i) text.append(" ").append(arguments[i]);
  return text;
}

}  // namespace

Command parse(std::span<const char* const> arguments) {
  check_command_word(arguments);
  CLI::App app("Executes Ebb's plans on real GPUs, proves their numbers, and calibrates the simulator.", "ebb-replay");
  app.set_version_flag("--version", "ebb-replay " EBB_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  ebb simulate job.yaml --policy chunked --chunk-numel 1e8 -o plan.json\n"
      "  ebb-replay run plan.json -o measured.json\n"
      "  ebb-replay equivalence job.yaml --policy chunked --chunk-numel 1e6\n"
      "  ebb-replay calibrate -o cluster.yaml\n"
      "  ebb simulate job.yaml --policy chunked --chunk-numel 1e8 --life -o life.json\n"
      "  ebb-replay train life.json --steps 20 --checkpoint checkpoints --save-every 10\n"
      "  ebb-replay checkpoint checkpoints\n"
      "Exit codes: 0 done, 1 not equivalent, 2 bad input, 3 the machine failed (CUDA, NCCL, files, memory).");
  RunOptions run;
  EquivalenceOptions equivalence;
  TrainOptions train;
  CheckpointOptions checkpoint;
  CalibrateOptions calibrate;
  Words words;
  add_run(app, run, words);
  add_equivalence(app, equivalence, words);
  add_train(app, train, words);
  add_checkpoint(app, checkpoint);
  add_calibrate(app, calibrate, words);
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) reject(error);
    std::ostringstream text;
    app.exit(error, text, text);
    return Print{text.str()};
  }
  if (app.got_subcommand("run")) {
    complete(run, words);
    return run;
  }
  if (app.got_subcommand("checkpoint")) return checkpoint;
  if (app.got_subcommand("equivalence")) {
    complete(equivalence, words);
    return equivalence;
  }
  if (app.got_subcommand("train")) {
    complete(train, words);
    return train;
  }
  complete(calibrate, words);
  calibrate.command = joined(arguments);
  return calibrate;
}

}  // namespace ebb::replay::cli
