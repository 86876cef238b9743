// Options of `ebb-replay` as words: what the parser fills in as text, so that every message names the option, and the
// values in them. Only the cli_*.cpp files see this: CLI11 stays in them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/cli_options.hpp"
#include "reports/command_line.hpp"

namespace ebb::replay::cli {

struct Words {
  std::optional<std::string> device, devices, slow, warmups, repeats, seed, steps, seconds, output, trace, base, raw,
      from;
  std::optional<std::string> policy, chunk_numel, chunk_size_mb, fraction, slots, cap;
  std::optional<std::string> save_at, kill_at, skip_at, skip_value, reshard_at, reshard, checkpoint, save_every, keep;
  std::optional<std::string> load, load_params, initial_loss_scale;
  std::optional<std::string> shell, man_entry;
  std::vector<std::string> injections;
  bool loss_scale = false;
};

void add_text(CLI::App& command, const char* names, std::optional<std::string>& value, const char* help,
              const char* type);
/// One of these words.
void add_choice(CLI::App& command, const char* names, std::optional<std::string>& value, const char* help,
                const char* type, const std::vector<std::string>& words);
/// A flag that turns something off. (CLI11's own way shows as "--flag{false}" in the help.)
void add_without(CLI::App& command, const char* flag, bool& on, const char* help);
void add_loss_scale(CLI::App& command, Words& words);

/// All of these: InputError that names the option.
std::int64_t count(const std::optional<std::string>& text, const char* option, std::int64_t otherwise,
                   std::int64_t least, std::int64_t most);
Device device_of(const std::optional<std::string>& word, Device otherwise);
std::vector<int> devices_of(const std::optional<std::string>& list);
std::vector<std::string> stream_words();
std::optional<StreamKind> stream_of(const std::optional<std::string>& word);
/// Not empty, where it is given.
std::optional<std::string> path_of(const std::optional<std::string>& text, const char* option);
/// inf, -inf or nan.
float spoiled_value(const std::string& word, const char* option);
LossScaling loss_scaling_of(const Words& words);

// The commands that have files of their own.
void add_equivalence(CLI::App& app, EquivalenceOptions& o, Words& words);  // cli_equivalence.cpp
void complete(EquivalenceOptions& o, const Words& words);
void add_train(CLI::App& app, TrainOptions& o, Words& words);  // cli_train.cpp
void complete(TrainOptions& o, const Words& words);

}  // namespace ebb::replay::cli
