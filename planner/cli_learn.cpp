// `ebb learn LOG JOB`: a job with the figures of its own training log. The job goes to stdout or to -o FILE; what was
// found and assumed goes to stderr, or with --json, together with the job, to stdout as one document.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "models/cluster_yaml.hpp"
#include "models/job_yaml.hpp"
#include "models/library.hpp"
#include "models/terminal_text.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/learn.hpp"
#include "reports/learned_json.hpp"
#include "reports/learned_text.hpp"

namespace ebb::cli {

namespace {

constexpr std::uintmax_t kMostLogBytes = std::uintmax_t{1} << 30;

/// The library's name of the job's cluster, "" when it is none of the library.
std::string library_name_of(const Cluster& cluster) {
  const std::filesystem::path path = library_path(Library::clusters, cluster.name);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  return load_cluster(path) == cluster ? cluster.name : "";
}

/// A log may hold bytes of any kind; only what is understood is used.
std::string read_log(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw InputError({path}, "there is no such file");
  if (std::filesystem::is_directory(path, error)) throw InputError({path}, "this is a directory", "give the log file");
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kMostLogBytes)
    throw InputError({path}, "the log is larger than 1 GiB", "give its end: tail -n 100000 LOG > end.log");
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw IoError(path + ": cannot be read");
  return text.str();
}

reports::LearnReport report_of(const Learned& learned, const TrainingLog& log, const LearnOptions& options) {
  reports::LearnReport report;
  report.job = learned.job.name;
  report.log = options.log;
  report.ebb_version = EBB_VERSION;
  report.policy = name_of(learned.candidate.policy);
  report.offload = offload_text(learned.candidate);
  report.policy_from = name_of(learned.policy_source);
  const StepSample& sample = learned.sample;
  report.iteration = sample.median;
  report.deviation = sample.deviation;
  report.lines = sample.lines;
  report.used = sample.used;
  report.left_out = {sample.first, sample.skipped, sample.other_batch, sample.after_pause, sample.outliers};
  report.step_seconds = learned.step_seconds;
  report.optimizer_predicted = learned.optimizer_predicted;
  report.optimizer_logged = learned.optimizer_logged;
  for (const LearnedMemory& m : learned.memory)
    report.ranks.push_back({m.rank, m.iterations, m.allocated, m.predicted_allocated, m.peak, m.predicted_peak});
  report.memory_left_out = log.memory_skipped;
  report.resident_remainder = learned.job.measured.resident_remainder;
  report.peak_remainder = learned.job.measured.peak_remainder;
  report.theoretical_state = log.theoretical_state;
  report.assumed = learned.assumed;
  report.warnings = learned.warnings;
  report.job_file = options.job_file.value_or("");
  report.job_text = reports::comments_of(report) + write_job(learned.job, library_name_of(learned.job.cluster));
  return report;
}

}  // namespace

int run_learn(const LearnOptions& options) {
  check_outputs({options.log}, {{"-o", options.job_file}});
  const Job job = load_job_argument(options.job, options.settings);
  check(job);
  const TrainingLog log = read_training_log(read_log(options.log));
  const reports::LearnReport report = report_of(learn(job, log, options.log), log, options);
  if (options.job_file) write_file(*options.job_file, report.job_text);
  if (options.json) {
    write_stdout(reports::to_json(report));
    return 0;
  }
  std::istringstream lines(reports::to_text(report));
  for (std::string line; std::getline(lines, line);) write_message("ebb", line);
  if (!options.job_file) write_stdout(report.job_text);
  return 0;
}

}  // namespace ebb::cli
