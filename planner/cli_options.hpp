// The command line of `ebb`, parsed: which command with which options. Values stay text here where they carry units;
// the commands parse them, so that every message names the option. CLI11 stays inside cli_app.hpp and the
// files that include it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace ebb::cli {

/// `--set KEY=VALUE`, in their order: what a job says, changed before it is read.
using Settings = std::vector<std::string>;

struct PlanOptions {
  std::string job;
  std::optional<std::string> budget, host_budget, megatron;
  std::optional<std::string> objective;  // step, memory or balanced
  std::optional<std::string> format;     // flags, yaml, bridge or verl
  bool robust = false;
  bool all = false;  // every row and column
  Settings settings;
  bool json = false;
  std::optional<std::string> plan_file, timeline_file, trace_file, html_file;
  std::optional<std::string> measured_file;  // timeline of ebb-replay, for the report
};

/// What describes one candidate, for `simulate` and `layout`.
struct CandidateOptions {
  std::optional<std::string> policy, chunk_numel, chunk_size_mb, fraction, slots, cap;
};

/// Of a job, or (`plan`, `cluster`) of a plan that is there already.
struct SimulateOptions {
  std::string job;
  CandidateOptions candidate;
  std::optional<std::string> plan, cluster;
  std::optional<std::string> budget, host_budget;
  bool robust = false;
  bool json = false;
  bool life = false;  // all parts of the job's life instead of its phases
  std::optional<std::string> gpus;
  Settings settings;
  std::optional<std::string> plan_file, timeline_file, trace_file, html_file;
  std::optional<std::string> measured_file;  // timeline of ebb-replay, for the report
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
  std::optional<std::string> budget, host_budget, megatron;
  std::optional<std::string> objective;  // by which the candidate is chosen
  bool robust = false;
  Settings settings;
  bool json = false;
};

/// The most, or the least, of something with which the job still fits.
struct FitOptions {
  std::string job;
  std::optional<std::string> max;  // sequence, micro-batch or layers
  std::optional<std::string> min;  // gpus or host-memory
  std::optional<std::string> budget, host_budget, megatron;
  Settings settings;
  bool json = false;
};

/// One answer for every combination of values.
struct SweepOptions {
  std::string job;
  Settings settings;  // KEY=VALUE, KEY=V1,V2 or KEY=A..B:STEP
  CandidateOptions candidate;
  std::optional<std::string> budget, host_budget, megatron;
  bool json = false;
};

struct DiffOptions {
  std::string predicted;
  std::string measured;
  std::string fail_above = "5%";
  bool json = false;
};

/// Documents and timelines of earlier runs as one HTML page.
struct ReportOptions {
  std::vector<std::string> files;
  std::string html_file;
};

/// What the library holds: models, clusters or policies.
struct LibraryOptions {
  std::string kind;
  std::optional<std::string> name;  // show this one; otherwise list all
  bool json = false;
};

struct SchemaOptions {
  std::string name;
};

/// This machine, and what it means for a job's plan.
struct DoctorOptions {
  std::optional<std::string> job;
  std::optional<std::string> checkpoint;  // directory
  std::optional<std::string> root;        // whose /proc and /sys are read instead of this machine's
  Settings settings;
  bool json = false;
};

struct LearnOptions {
  std::string log;
  std::string job;
  std::optional<std::string> job_file;  // where the learned job goes instead of stdout
  Settings settings;
  bool json = false;
};

/// Everything behind `ebb replay`, unread.
struct ReplayOptions {
  std::vector<std::string> arguments;
};

/// `--help`, `--version`, a completion script, a man page: only print this.
struct Print {
  std::string text;
};

using Command = std::variant<PlanOptions, SimulateOptions, LayoutOptions, ImportOptions, CheckOptions, ScoreOptions,
                             ExplainOptions, DiffOptions, FitOptions, SweepOptions, ReportOptions, LibraryOptions,
                             SchemaOptions, DoctorOptions, LearnOptions, ReplayOptions, Print>;

/// What every command takes: how much it says beside its result.
struct Everywhere {
  bool quiet = false;    // no progress, no remarks
  bool verbose = false;  // which files were read, how long each part took
  bool no_colour = false;
  bool print_config = false;  // the job as it is read, instead of the answer
};

struct CommandWords {
  Command command;
  Everywhere everywhere;
};

/// InputError for anything that is not a complete command line.
CommandWords parse(std::span<const char* const> arguments);

}  // namespace ebb::cli
