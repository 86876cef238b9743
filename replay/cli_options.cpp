#include "replay/cli_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <sstream>

#include "models/nearest.hpp"
#include "models/quantity_text.hpp"

namespace ebb::replay::cli {

namespace {

/// What the parser fills in as text, so that every message names the option.
struct Words {
  std::optional<std::string> device, devices, slow, warmups, repeats, seed, steps, seconds, output, base, raw, from;
  std::optional<std::string> policy, chunk_numel, chunk_size_mb, fraction, slots;
};

void add_text(CLI::App& command, const char* names, std::optional<std::string>& value, const char* help,
              const char* type) {
  command.add_option(names, value, help)->type_name(type);
}

std::int64_t count(const std::optional<std::string>& text, const char* option, std::int64_t otherwise,
                   std::int64_t least, std::int64_t most) {
  if (!text) return otherwise;
  const std::int64_t value = parse_count(*text, {.file = option});
  if (value < least || value > most)
    throw InputError({.file = option}, fmt::format("{} is not in {} to {}", value, least, most));
  return value;
}

Device device_of(const std::optional<std::string>& word, Device otherwise) {
  if (!word) return otherwise;
  if (*word == "gpu") return Device::gpu;
  if (*word == "cpu") return Device::cpu;
  throw InputError({.file = "--device"}, fmt::format("unknown device \"{}\"", word->substr(0, 40)), "cpu or gpu");
}

std::vector<int> devices_of(const std::optional<std::string>& list) {
  std::vector<int> devices;
  if (!list) return devices;
  constexpr std::int64_t kMostDevices = 1024;
  std::istringstream words(*list);
  for (std::string word; std::getline(words, word, ',');)
    devices.push_back(static_cast<int>(count(word, "--devices", 0, 0, kMostDevices)));
  if (devices.empty()) throw InputError({.file = "--devices"}, "no device in it", "e.g. 0,1");
  return devices;
}

std::optional<StreamKind> stream_of(const std::optional<std::string>& word) {
  if (!word) return std::nullopt;
  std::vector<std::string> known;
  for (const StreamKind kind :
       {StreamKind::host, StreamKind::compute, StreamKind::h2d, StreamKind::d2h, StreamKind::comm}) {
    if (name_of(kind) == *word) return kind;
    known.emplace_back(name_of(kind));
  }
  throw InputError({.file = "--slow"}, fmt::format("unknown stream \"{}\"", word->substr(0, 40)),
                   did_you_mean(*word, known, "streams"));
}

/// A flag that turns something off. (CLI11's own way shows as "--flag{false}" in the help.)
void add_without(CLI::App& command, const char* flag, bool& on, const char* help) {
  command.add_flag_callback(
      flag, [&on] { on = false; }, help);
}

void add_run(CLI::App& app, RunOptions& o, Words& words) {
  CLI::App* command = app.add_subcommand("run", "Execute plans on this machine's GPUs: times, memory, numbers");
  command->add_option("PLAN", o.plans, "plan files, written with ebb simulate JOB --policy P -o FILE")
      ->required()
      ->type_name("");
  add_text(*command, "-o", words.output, "write the measured timeline; of several plans into this directory", "FILE");
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

void add_equivalence(CLI::App& app, EquivalenceOptions& o, Words& words) {
  CLI::App* command =
      app.add_subcommand("equivalence", "A policy's numbers against resident's: every bit, and a lower peak");
  command->add_option("JOB", o.job, "job file for ebb simulate; or resident's plan file")->required()->type_name("");
  command->add_option("PLAN", o.other, "the policy's plan file, after resident's")->type_name("");
  add_text(*command, "--policy", words.policy, "full-reload, chunked, windowed, cpu-adam or pipelined", "POLICY");
  add_text(*command, "--chunk-numel", words.chunk_numel, "elements in a chunk (chunked, pipelined)", "N");
  add_text(*command, "--chunk-size-mb", words.chunk_size_mb, "MiB of moments in a chunk, 0: all (windowed)", "M");
  add_text(*command, "--fraction", words.fraction, "part of the state that moves (windowed, cpu-adam)", "F");
  add_text(*command, "--slots", words.slots, "device slots (pipelined)", "D");
  add_text(*command, "--steps", words.steps, "training steps (5)", "N");
  add_text(*command, "--seed", words.seed, "of parameters and gradients (1)", "S");
  add_text(*command, "--device", words.device, "cpu (default): in every held-back order; or gpu", "WHICH");
  add_text(*command, "--devices", words.devices, "one GPU for each rank, e.g. 0,1", "LIST");
  command->add_flag("--json", o.json, "print one JSON document");
  command->footer("Example: ebb-replay equivalence job.yaml --policy chunked --chunk-numel 1e6");
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
  o.device = device_of(words.device, Device::gpu);
  o.execute.devices = devices_of(words.devices);
  o.execute.slow = stream_of(words.slow);
  o.execute.warmups = static_cast<int>(count(words.warmups, "--warmups", o.execute.warmups, 0, kMostSteps));
  o.execute.repeats = static_cast<int>(count(words.repeats, "--repeats", o.execute.repeats, 1, kMostSteps));
  o.execute.training.seed = static_cast<std::uint64_t>(count(words.seed, "--seed", 1, 0, INT64_MAX));
  if (o.device == Device::cpu && o.output)
    throw InputError({.file = "-o"}, "the CPU computes the plan's numbers and has no times to write",
                     "leave it out, or run with --device gpu");
}

void complete(EquivalenceOptions& o, const Words& words) {
  constexpr std::int64_t kMostSteps = 10'000;
  o.device = device_of(words.device, Device::cpu);
  o.devices = devices_of(words.devices);
  o.steps = static_cast<int>(count(words.steps, "--steps", o.steps, 1, kMostSteps));
  o.seed = static_cast<std::uint64_t>(count(words.seed, "--seed", 1, 0, INT64_MAX));
  const std::array<std::pair<const char*, const std::optional<std::string>*>, 5> policy = {
      {{"--policy", &words.policy},
       {"--chunk-numel", &words.chunk_numel},
       {"--chunk-size-mb", &words.chunk_size_mb},
       {"--fraction", &words.fraction},
       {"--slots", &words.slots}}};
  for (const auto& [option, value] : policy) {
    if (!*value) continue;
    if (o.other) throw InputError({.file = option}, "two plan files say their policies themselves", "leave it out");
    o.policy.insert(o.policy.end(), {option, **value});
  }
  if (!o.other && !words.policy)
    throw InputError({.file = "--policy"}, "which policy is to be compared with resident?",
                     "name one, or give two plan files");
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
  const std::vector<std::string> known = {"run", "equivalence", "calibrate", "checkpoint"};
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
      "Exit codes: 0 done, 1 not equivalent, 2 bad input, 3 the machine failed (CUDA, NCCL, files, memory).");
  RunOptions run;
  EquivalenceOptions equivalence;
  CalibrateOptions calibrate;
  CheckpointOptions checkpoint;
  Words words;
  add_run(app, run, words);
  add_equivalence(app, equivalence, words);
  add_calibrate(app, calibrate, words);
  add_checkpoint(app, checkpoint);
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
  complete(calibrate, words);
  calibrate.command = joined(arguments);
  return calibrate;
}

}  // namespace ebb::replay::cli
