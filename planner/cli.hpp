// The commands of `ebb`. Each loads and checks the job, computes, writes its result to stdout and returns the exit
// code: 0 answered, 1 answered in the negative. Bad input and a failing machine are exceptions (main.cpp: 2 and 3).
#pragma once

#include <optional>
#include <span>
#include <string>

#include "models/job.hpp"
#include "models/plan.hpp"
#include "models/timeline.hpp"
#include "models/timeline_file.hpp"
#include "planner/candidate_report.hpp"
#include "planner/cli_options.hpp"
#include "planner/constraints.hpp"
#include "planner/life.hpp"
#include "planner/search.hpp"
#include "reports/answer.hpp"

namespace ebb::cli {

int run_plan(const PlanOptions& options);
int run_simulate(const SimulateOptions& options);
int run_layout(const LayoutOptions& options);
int run_import(const ImportOptions& options);
int run_check(const CheckOptions& options);
int run_score(const ScoreOptions& options);
int run_explain(const ExplainOptions& options);
int run_diff(const DiffOptions& options);
int run_fit(const FitOptions& options);
int run_sweep(const SweepOptions& options);
int run_report(const ReportOptions& options);
int run_library(const LibraryOptions& options);
int run_schema(const SchemaOptions& options);
int run_doctor(const DoctorOptions& options);
int run_learn(const LearnOptions& options);
/// Does not return where `ebb-replay` could be started.
int run_replay(const ReplayOptions& options);

/// `--print-config` of a command that takes a job.
int print_config(const Command& command);

/// The largest plan or timeline file that is read: about ten million ops.
inline constexpr std::int64_t kMostPlanBytes = std::int64_t{1} << 31;

/// The job that a command's argument names, in any form (any_job.hpp). What an import assumed or could not model goes
/// to stderr.
/// `settings` (`--set KEY=VALUE`) change it before it is read.
Job load_job_argument(const std::string& file, const Settings& settings = {});

/// `--gpus N`. InputError when it is no number of GPUs.
std::int64_t parse_gpus(const std::string& text);

/// The request on the command line, completed by the job's `offload:` where that names the same policy, or where the
/// command line names none. InputError names the option.
Candidate candidate_from(const CandidateOptions& options, const Job& job);

/// A remark where the job's `offload:` names a chunk that is larger than a rank's state. Precondition: check(job)
/// passed.
void remark_on_chunk(const Job& job);

/// The request on the command line beside the job's `offload:` block, or instead of it where it names another policy;
/// its options become the places that errors name. InputError for what cannot be read.
void set_offload(Job& job, const CandidateOptions& options);

/// Budgets from the command line replace the job's; their options become the places that errors name.
void set_budgets(Job& job, const std::optional<std::string>& device, const std::optional<std::string>& host);

/// Files beside an answer; each is written where it is named.
struct HostFiles {
  std::optional<std::string> plan, timeline, trace;
  std::optional<std::string> measured;  // read: a run of the same plans, into the trace as well
};

/// Plans of the host with the slowest rank, when their ops would run, and both for a trace viewer. InputError where
/// `measured` is of other plans.
void write_host_files(const Job& job, const Candidate& candidate, const HostFiles& files);

void write_timeline(std::span<const Plan> plans, std::span<const Timeline> timelines, const std::string& cluster,
                    const std::string& path);
/// With `measured` a run of these plans beside each.
void write_trace(std::span<const Plan> plans, std::span<const Timeline> timelines,
                 const std::optional<std::string>& measured, const std::string& path);

/// InputError where the timeline in the file `name` is of the other source.
void require_run(const TimelineFile& timeline, const std::string& name);
void require_prediction(const TimelineFile& timeline, const std::string& name);

/// Before anything is computed: InputError where --trace is of no trace format, or --measured has nowhere to go.
void check_trace_options(const std::optional<std::string>& trace, const std::optional<std::string>& html,
                         const std::optional<std::string>& measured);

/// A file name as an argument of a command to paste.
std::string quoted(const std::string& argument);

reports::Header header_of(const Job& job);
using ebb::report_of;  // of an Answer
std::vector<reports::Phase> report_of(const Life& life);
reports::Curve curve_of(const Job& job, const Life& life);

}  // namespace ebb::cli
