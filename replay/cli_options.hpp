// The command line of `ebb-replay`, parsed: which command with which options. CLI11 stays inside cli_options.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "replay/calibrate.hpp"
#include "replay/command_checkpoint.hpp"
#include "replay/execute.hpp"

namespace ebb::replay::cli {

enum class Device { gpu, cpu };

struct RunOptions {
  std::vector<std::string> plans;
  std::optional<std::string> output;
  Device device = Device::gpu;
  ExecuteOptions execute;
  bool json = false;
};

/// A job and a policy, or two plan files.
struct EquivalenceOptions {
  std::string job;
  std::optional<std::string> other;  // the second plan file
  std::vector<std::string> policy;   // its options, as `ebb simulate` takes them
  Device device = Device::cpu;
  std::vector<int> devices;
  int steps = 5;
  std::uint64_t seed = 1;
  bool json = false;
};

/// `--help` or `--version`: only print this.
struct Print {
  std::string text;
};

using Command = std::variant<RunOptions, EquivalenceOptions, CalibrateOptions, CheckpointOptions, Print>;

/// InputError for anything that is not a complete command line.
Command parse(std::span<const char* const> arguments);

}  // namespace ebb::replay::cli
