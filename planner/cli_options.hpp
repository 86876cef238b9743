// The command line of `ebb`, parsed: which command with which options. Values stay text here where they carry units;
// the commands parse them, so that every message names the option. CLI11 stays inside cli_options.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace ebb::cli {

struct PlanOptions {
  std::string job;
  std::optional<std::string> budget, host_budget, megatron;
  bool json = false;
  std::optional<std::string> plan_file, timeline_file;
};

/// What describes one candidate, for `simulate` and `layout`.
struct CandidateOptions {
  std::optional<std::string> policy, chunk_numel, chunk_size_mb, fraction, slots;
};

/// Of a job, or (`plan`, `cluster`) of a plan that is there already.
struct SimulateOptions {
  std::string job;
  CandidateOptions candidate;
  std::optional<std::string> plan, cluster;
  std::optional<std::string> budget, host_budget;
  bool json = false;
  bool life = false;  // all parts of the job's life instead of its phases
  std::optional<std::string> gpus;
  std::optional<std::string> plan_file, timeline_file;
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

struct DiffOptions {
  std::string predicted;
  std::string measured;
  std::string fail_above = "5%";
  bool json = false;
};

/// Everything behind `ebb replay`, unread.
struct ReplayOptions {
  std::vector<std::string> arguments;
};

/// `--help` or `--version`: only print this.
struct Print {
  std::string text;
};

using Command = std::variant<PlanOptions, SimulateOptions, LayoutOptions, ImportOptions, CheckOptions, ScoreOptions,
                             ExplainOptions, DiffOptions, ReplayOptions, Print>;

/// InputError for anything that is not a complete command line.
Command parse(std::span<const char* const> arguments);

}  // namespace ebb::cli
