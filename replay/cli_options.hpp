// The command line of `ebb-replay`, parsed: which command with which options. CLI11 stays inside the cli_*.cpp
// files.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "replay/calibrate.hpp"
#include "replay/command_checkpoint.hpp"
#include "replay/execute.hpp"
#include "replay/life_script.hpp"
#include "replay/talk.hpp"

namespace ebb::replay::cli {

enum class Device { gpu, cpu };

struct RunOptions {
  std::vector<std::string> plans;
  std::optional<std::string> output;
  std::optional<std::string> trace;  // of one plan
  Device device = Device::gpu;
  ExecuteOptions execute;
  bool json = false;
};

/// A job and a policy, or two plan files.
struct EquivalenceOptions {
  std::string job;
  std::optional<std::string> other;  // the second plan file
  std::vector<std::string> policy;   // options as `ebb simulate` takes them, beside the job's own offload block
  Device device = Device::cpu;
  std::vector<int> devices;
  int steps = 5;
  std::uint64_t seed = 1;
  bool json = false;

  bool life = false;
  LifeShape shape;
  std::optional<std::int64_t> reshard;  // GPUs of the job that goes on; 0: no such job; unset: half, on the CPU also 2
  std::optional<std::string> checkpoint;
  bool disturbed = true;
  LossScaling scaling;
};

/// A life's plans, trained.
struct TrainOptions {
  std::string life;
  int steps = 0;  // training steps when it ends, those before a resume included
  std::optional<std::string> checkpoint;
  int save_every = 0;  // 0: at the end only
  std::size_t keep = 2;
  bool resume = false;
  std::optional<std::string> load;
  std::optional<std::string> load_params;
  bool storage_reference = false;
  bool seed_given = false;  // these three: by the user
  bool scaling_given = false;
  bool initial_scale_given = false;
  Device device = Device::gpu;
  ExecuteOptions execute;
  bool json = false;
};

/// `--help` or `--version`: only print this.
struct Print {
  std::string text;
};

using Command = std::variant<RunOptions, EquivalenceOptions, TrainOptions, CheckpointOptions, CalibrateOptions, Print>;

struct CommandWords {
  Command command;
  Talk talk;
};

/// InputError for anything that is not a complete command line.
CommandWords parse(std::span<const char* const> arguments);

}  // namespace ebb::replay::cli
