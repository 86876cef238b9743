// The command line of `ebb`, parsed: which command with which options. Values stay text here where they carry units;
// the commands parse them, so that every message names the option. CLI11 stays inside cli_options.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>

namespace ebb::cli {

struct PlanOptions {
  std::string job;
  std::optional<std::string> budget, host_budget, megatron;
  bool json = false;
  std::optional<std::string> plan_file;
};

/// What describes one candidate, for `simulate` and `layout`.
struct CandidateOptions {
  std::optional<std::string> policy, chunk_numel, chunk_size_mb, fraction, slots;
};

struct SimulateOptions {
  std::string job;
  CandidateOptions candidate;
  std::optional<std::string> budget, host_budget;
  bool json = false;
  std::optional<std::string> plan_file;
};

struct LayoutOptions {
  std::string job;
  std::string rank;
  CandidateOptions candidate;
  bool json = false;
};

/// A job file, or Megatron-LM arguments in any of their forms, or a Hugging Face config.json: to stdout as a job.
struct ImportOptions {
  std::string kind;  // megatron or hf
  std::string file;
  std::optional<std::string> cluster;
  std::optional<std::string> gpus;
};

struct CheckOptions {
  std::string job;
  std::optional<std::string> megatron;
  CandidateOptions candidate;  // beside or instead of the job's own offload block
  bool json = false;
};

struct ScoreOptions {
  std::string file;
  bool json = false;
};

struct ExplainOptions {
  std::string job;
  std::optional<std::string> phase;
  CandidateOptions candidate;
  std::optional<std::string> budget, host_budget;
  bool json = false;
};

/// `--help` or `--version`: only print this.
struct Print {
  std::string text;
};

using Command = std::variant<PlanOptions, SimulateOptions, LayoutOptions, ImportOptions, CheckOptions, ScoreOptions,
                             ExplainOptions, Print>;

/// InputError for anything that is not a complete command line.
Command parse(std::span<const char* const> arguments);

}  // namespace ebb::cli
