// The options of `ebb-replay train`.
#include <fmt/format.h>

#include <array>
#include <sstream>

#include "models/errors.hpp"
#include "replay/cli_words.hpp"

namespace ebb::replay::cli {

namespace {

constexpr std::int64_t kMostSteps = 1'000'000;

/// "STEP:RANK:VALUE".
Injection injection_of(const std::string& text) {
  std::vector<std::string> fields;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ':');) fields.push_back(word);
  if (fields.size() != 3)
    throw InputError({.file = "--inject"}, fmt::format("\"{}\" is no step, rank and value", text.substr(0, 40)),
                     "STEP:RANK:VALUE, e.g. 3:0:inf");
  return {count(fields[0], "--inject", 0, 1, kMostSteps), count(fields[1], "--inject", 0, 0, kMostSteps),
          spoiled_value(fields[2], "--inject")};
}

void check_together(const TrainOptions& o, const Words& words) {
  if (!o.checkpoint) {
    const std::array<std::pair<const char*, bool>, 4> options = {{{"--save-every", words.save_every.has_value()},
                                                                  {"--keep", words.keep.has_value()},
                                                                  {"--resume", o.resume},
                                                                  {"--storage-reference", o.storage_reference}}};
    for (const auto& [option, given] : options)
      if (given)
        throw InputError({.file = option}, "where are the checkpoints?", "name their directory: --checkpoint DIR");
  }
  if (static_cast<int>(o.resume) + static_cast<int>(o.load.has_value()) + static_cast<int>(o.load_params.has_value()) >
      1)
    throw InputError({.file = o.resume ? "--resume" : "--load"}, "a run begins with one checkpoint",
                     "one of --resume, --load and --load-params");
  if (o.device == Device::cpu) {
    const std::array<std::pair<const char*, bool>, 4> options = {{{"--devices", words.devices.has_value()},
                                                                  {"--no-compute", !o.execute.compute},
                                                                  {"--no-framework-time", !o.execute.framework_time},
                                                                  {"--poison", o.execute.poison}}};
    for (const auto& [option, given] : options)
      if (given) throw InputError({.file = option}, "it is for GPUs", "leave it out, or run with --device gpu");
  }
  for (const Injection& injection : o.execute.training.injections)
    if (injection.step > o.steps)
      throw InputError({.file = "--inject"}, fmt::format("training ends before step {}", injection.step),
                       fmt::format("a step of 1 to {}", o.steps));
}

}  // namespace

void add_train(CLI::App& app, TrainOptions& o, Words& words) {
  CLI::App* command = app.add_subcommand("train", "Live through a life's plans: init, load, steps, saves");
  command->add_option("LIFE", o.life, "file of all parts: ebb simulate JOB --policy P --life -o FILE")
      ->required()
      ->type_name("");
  add_text(*command, "--steps", words.steps, "train until this step, those before a resume included", "N");
  add_text(*command, "--checkpoint", words.checkpoint, "directory of checkpoints; the last step is always saved there",
           "DIR");
  add_text(*command, "--save-every", words.save_every, "also save whenever so many steps are done", "K");
  add_text(*command, "--keep", words.keep, "checkpoints that a save leaves there, 0: all (2)", "K");
  command->add_flag("--resume", o.resume, "begin with the newest checkpoint there, where there is one");
  add_text(*command, "--load", words.load, "begin with this checkpoint", "PATH");
  add_text(*command, "--load-params", words.load_params, "begin with only the parameters of this checkpoint", "PATH");
  command
      ->add_option("--inject", words.injections,
                   "inf, -inf or nan in a gradient of this rank, which skips the step; may be repeated")
      ->type_name("STEP:RANK:VALUE")
      ->allow_extra_args(false);
  add_loss_scale(*command, words);
  add_text(*command, "--seed", words.seed, "of parameters and gradients (1); a resume has its run's", "S");
  command->add_flag("--storage-reference", o.storage_reference,
                    "also time plain large writes there, and compare the saves with them");
  add_choice(*command, "--device", words.device, "what runs it; the cpu computes the numbers alone (default gpu)",
             "WHICH", {"gpu", "cpu"});
  add_text(*command, "--devices", words.devices, "one GPU for each rank, e.g. 0,1", "LIST");
  add_without(*command, "--no-compute", o.execute.compute, "leave out the products that stand in for the model");
  add_without(*command, "--no-framework-time", o.execute.framework_time, "leave out the framework's own CPU time");
  add_choice(*command, "--slow", words.slow, "hold one stream back", "STREAM", stream_words());
  command->add_flag("--poison", o.execute.poison, "fill device memory with NaN at every allocation");
  command->add_flag("--json", o.json, "print one JSON document");
  command->footer(
      "Example: ebb-replay train life.json --steps 6 --checkpoint checkpoints --save-every 2 --resume --device cpu");
}

void complete(TrainOptions& o, const Words& words) {
  if (!words.steps) throw InputError({.file = "--steps"}, "how far is it to train?", "e.g. --steps 20");
  o.steps = static_cast<int>(count(words.steps, "--steps", 1, 1, kMostSteps));
  o.checkpoint = path_of(words.checkpoint, "--checkpoint");
  o.save_every = static_cast<int>(count(words.save_every, "--save-every", 0, 1, kMostSteps));
  o.keep = static_cast<std::size_t>(count(words.keep, "--keep", 2, 0, kMostSteps));
  o.load = path_of(words.load, "--load");
  o.load_params = path_of(words.load_params, "--load-params");
  o.device = device_of(words.device, Device::gpu);
  o.execute.devices = devices_of(words.devices);
  o.execute.slow = stream_of(words.slow);
  TrainingOptions& training = o.execute.training;
  training.digests = true;
  training.seed = static_cast<std::uint64_t>(count(words.seed, "--seed", 1, 0, INT64_MAX));
  training.scaling = loss_scaling_of(words);
  o.seed_given = words.seed.has_value();
  o.scaling_given = training.scaling.on;
  o.initial_scale_given = words.initial_loss_scale.has_value();
  for (const std::string& text : words.injections) training.injections.push_back(injection_of(text));
  check_together(o, words);
}

}  // namespace ebb::replay::cli
