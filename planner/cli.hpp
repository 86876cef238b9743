// The commands of `ebb`. Each loads and checks the job, computes, writes its result to stdout and returns the exit
// code: 0 answered, 1 answered in the negative. Bad input and a failing machine are exceptions (main.cpp: 2 and 3).
#pragma once

#include <string>

#include "models/job.hpp"
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

/// The request on the command line beside the job's `offload:` block, or instead of it where it names another policy;
/// its options become the places that errors name. InputError for what cannot be read.
void set_offload(Job& job, const CandidateOptions& options);

/// Budgets from the command line replace the job's; their options become the places that errors name.
void set_budgets(Job& job, const std::optional<std::string>& device, const std::optional<std::string>& host);

/// Plans of the host with the slowest rank, and when their ops would run; each only where a file is named.
void write_host_plans(const Job& job, const Candidate& candidate, const std::optional<std::string>& plan_file,
                      const std::optional<std::string>& timeline_file);

/// A file name as an argument of a command to paste.
std::string quoted(const std::string& argument);

reports::Header header_of(const Job& job);
reports::Candidate report_of(const Answer& answer);
std::vector<reports::Phase> report_of(const Life& life);
reports::Curve curve_of(const Job& job, const Life& life);

}  // namespace ebb::cli
