// The options of `ebb-replay equivalence`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "models/errors.hpp"
#include "replay/cli_words.hpp"

namespace ebb::replay::cli {

namespace {

constexpr std::int64_t kMostGpus = 1'000'000;

void add_life(CLI::App& command, EquivalenceOptions& o, Words& words) {
  const std::size_t before = command.get_options().size();
  command.add_flag("--life", o.life, "through init, skipped steps, saves, a kill, resumes and another number of ranks");
  add_text(command, "--skip-at", words.skip_at, "training steps with an inf in a gradient, or none (3)", "LIST");
  add_text(command, "--skip-value", words.skip_value, "inf (default), -inf or nan", "WHAT");
  add_text(command, "--save-at", words.save_at,
           "training step after which the first checkpoint is written (6; of fewer than 20 steps 4)", "N");
  add_text(command, "--kill-at", words.kill_at,
           "... after which the run is killed, to resume from that checkpoint (8; 5)", "N");
  add_text(command, "--reshard-at", words.reshard_at, "... after which the second one is written (13; 6)", "N");
  add_text(command, "--reshard", words.reshard,
           "GPUs that go on from the second one, or none (half as many; on the CPU 2 for 1)", "GPUS");
  add_text(command, "--checkpoint", words.checkpoint, "where checkpoints are written, and removed again (temporary)",
           "DIR");
  add_without(command, "--no-disturbed", o.disturbed,
              "leave out the lives in which each stream is held back or slowed");
  add_loss_scale(command, words);
  const std::vector<CLI::Option*> all = command.get_options();
  for (std::size_t i = before; i < all.size(); ++i) all[i]->group("A whole life");
}

std::vector<int> skips_of(const std::string& list, int most) {
  std::vector<int> skips;
  if (list == "none") return skips;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');)
    skips.push_back(static_cast<int>(count(word, "--skip-at", 0, 1, most)));
  if (skips.empty()) throw InputError({.file = "--skip-at"}, "no step in it", "e.g. 3, or none");
  std::sort(skips.begin(), skips.end());
  return skips;
}

/// Options that only a life has.
void check_no_life(const Words& words) {
  const std::array<std::pair<const char*, bool>, 9> options = {
      {{"--skip-at", words.skip_at.has_value()},
       {"--skip-value", words.skip_value.has_value()},
       {"--save-at", words.save_at.has_value()},
       {"--kill-at", words.kill_at.has_value()},
       {"--reshard-at", words.reshard_at.has_value()},
       {"--reshard", words.reshard.has_value()},
       {"--checkpoint", words.checkpoint.has_value()},
       {"--loss-scale", words.loss_scale},
       {"--initial-loss-scale", words.initial_loss_scale.has_value()}}};
  for (const auto& [option, given] : options)
    if (given) throw InputError({.file = option}, "it belongs to a whole life", "say --life, too");
}

void complete_life(EquivalenceOptions& o, const Words& words) {
  if (!o.life) {
    check_no_life(words);
    if (!o.disturbed) throw InputError({.file = "--no-disturbed"}, "it belongs to a whole life", "say --life, too");
    return;
  }
  LifeShape& shape = o.shape;
  shape = standard_life(o.steps);
  const auto at = [&](const std::optional<std::string>& word, const char* option, int otherwise) {
    return static_cast<int>(count(word, option, otherwise, 1, o.steps));
  };
  shape.save_at = at(words.save_at, "--save-at", shape.save_at);
  shape.kill_at = at(words.kill_at, "--kill-at", shape.kill_at);
  shape.reshard_at = at(words.reshard_at, "--reshard-at", shape.reshard_at);
  if (words.skip_at) shape.skips = skips_of(*words.skip_at, o.steps);
  if (words.skip_value) shape.skip_value = spoiled_value(*words.skip_value, "--skip-value");
  if (words.skip_value && shape.skips.empty())
    throw InputError({.file = "--skip-value"}, "no step is skipped", "leave it out, or name steps with --skip-at");
  if (words.reshard == "none") {
    o.reshard = 0;
  } else if (words.reshard) {
    o.reshard = count(words.reshard, "--reshard", 0, 1, kMostGpus);
  }
  if (o.other && o.reshard.value_or(0) > 0)
    throw InputError({.file = "--reshard"}, "two plan files have one number of ranks",
                     "leave it out, or name a job file in place of the plans");
  o.checkpoint = path_of(words.checkpoint, "--checkpoint");
  o.scaling = loss_scaling_of(words);
  check_shape(shape);
}

}  // namespace

namespace {

std::vector<std::string> policy_words() {
  std::vector<std::string> words;
  for (const Policy policy : kPolicies) words.emplace_back(name_of(policy));
  return words;
}

}  // namespace

void add_equivalence(CLI::App& app, EquivalenceOptions& o, Words& words) {
  CLI::App* command =
      app.add_subcommand("equivalence", "A policy's numbers against resident's: every bit, and a lower peak");
  command->add_option("JOB", o.job, "job file for ebb simulate; or resident's plan file")->required()->type_name("");
  command->add_option("PLAN", o.other, "the policy's plan file, after resident's")->type_name("");
  add_choice(*command, "--policy", words.policy, "how state moves, beside resident (the job's own)", "POLICY",
             policy_words());
  add_text(*command, "--chunk-numel", words.chunk_numel, "elements in a chunk (chunked, pipelined, tidal)", "N");
  add_text(*command, "--chunk-size-mb", words.chunk_size_mb, "MiB of moments in a chunk, 0: all (windowed)", "M");
  add_text(*command, "--fraction", words.fraction, "part of the state that moves (windowed, cpu-adam)", "F");
  add_text(*command, "--slots", words.slots, "device slots (pipelined)", "D");
  add_text(*command, "--cap", words.cap, "device memory that live bytes stay below (tidal)", "BYTES");
  add_text(*command, "--steps", words.steps, "training steps (5; of a life 20)", "N");
  add_text(*command, "--seed", words.seed, "of parameters and gradients (1)", "S");
  add_choice(*command, "--device", words.device, "where; on the cpu in every held-back order (default cpu)", "WHICH",
             {"cpu", "gpu"});
  add_text(*command, "--devices", words.devices, "one GPU for each rank, e.g. 0,1", "LIST");
  command->add_flag("--json", o.json, "print one JSON document");
  add_life(*command, o, words);
  command->footer(
      "Examples: ebb-replay equivalence small.yaml --policy chunked --chunk-numel 1e5\n"
      "          ebb-replay equivalence small.yaml --policy cpu-adam --life --reshard none --steps 8\n"
      "Exit 1: not equivalent");
}

void complete(EquivalenceOptions& o, const Words& words) {
  constexpr std::int64_t kMostSteps = 10'000;
  constexpr int kLifeSteps = 20;
  o.device = device_of(words.device, Device::cpu);
  o.devices = devices_of(words.devices);
  o.steps = static_cast<int>(count(words.steps, "--steps", o.life ? kLifeSteps : o.steps, 1, kMostSteps));
  o.seed = static_cast<std::uint64_t>(count(words.seed, "--seed", 1, 0, INT64_MAX));
  const std::array<std::pair<const char*, const std::optional<std::string>*>, 6> policy = {
      {{"--policy", &words.policy},
       {"--chunk-numel", &words.chunk_numel},
       {"--chunk-size-mb", &words.chunk_size_mb},
       {"--fraction", &words.fraction},
       {"--slots", &words.slots},
       {"--cap", &words.cap}}};
  for (const auto& [option, value] : policy) {
    if (!*value) continue;
    if (o.other) throw InputError({.file = option}, "two plan files say their policies themselves", "leave it out");
    o.policy.insert(o.policy.end(), {option, **value});
  }
  complete_life(o, words);
}

}  // namespace ebb::replay::cli
