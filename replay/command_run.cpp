// `ebb-replay run PLAN...`: every plan file in turn, on GPUs or on the CPU.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "models/errors.hpp"
#include "models/text_output.hpp"
#include "replay/commands.hpp"
#include "replay/plan_files.hpp"
#include "replay/run_facts.hpp"
#include "replay/run_report.hpp"
#include "replay/talk.hpp"
#include "reports/trace.hpp"

namespace ebb::replay::cli {

namespace {

namespace fs = std::filesystem;

/// The timeline's file: what the user named, or in that directory after the plan.
std::string timeline_name(const RunOptions& options, const std::string& plan) {
  const fs::path named(*options.output);
  const bool directory = options.plans.size() > 1 || !named.has_filename() || fs::is_directory(named);
  if (!directory) return named.string();
  std::error_code failed;
  fs::create_directories(named, failed);
  if (failed) throw IoError(fmt::format("cannot make the directory {}: {}", named.string(), failed.message()));
  return (named / (fs::path(plan).stem().string() + ".timeline.json")).string();
}

TimelineFile timeline_of(const PlanFile& file, const RunResult& run) {
  TimelineFile timeline;
  timeline.source = TimelineSource::measured;
  timeline.job = file.plans->front().job;
  timeline.candidate = file.plans->front().candidate;
  timeline.plan_digest = digest_of(*file.plans);
  timeline.provenance = run.provenance;
  timeline.provenance.emplace_back("date", run_date());
  for (const RankRun& rank : run.ranks) timeline.ranks.push_back(rank.timeline);
  return timeline;
}

void write_trace(const PlanFile& file, const RunResult& run, const std::string& path) {
  std::vector<Timeline> timelines;
  for (const RankRun& rank : run.ranks)
    timelines.push_back(reports::timeline_of(rank.timeline, TimelineSource::measured));
  reports::write_trace(*file.plans, timelines, path, "ebb-replay " EBB_VERSION);
}

std::string on_gpus(const RunOptions& options, const PlanFile& file) {
  const RunResult run = execute(file.programs, options.execute);
  if (!run.first_process) return "";  // the first of several processes has all ranks and reports
  if (options.output) write_text_file(timeline_name(options, file.name), to_json(timeline_of(file, run)));
  if (options.trace) write_trace(file, run, *options.trace);
  return options.json ? to_json(run) : to_text(run);
}

std::string on_cpu(const RunOptions& options, const PlanFile& file) {
  ReferenceOptions reference_options;
  reference_options.training = options.execute.training;
  reference_options.steps = options.execute.warmups + options.execute.repeats;
  reference_options.held_back = options.execute.slow;
  const std::vector<RankNumbers> numbers = reference(file.programs, reference_options);
  return options.json ? numbers_json(numbers, file.programs) : numbers_text(numbers, file.programs);
}

}  // namespace

int run_run(const RunOptions& options) {
  std::vector<PlanFile> files;  // all are read before the first runs: a mistake shows at once
  for (const std::string& name : options.plans) files.push_back(read_plan_file(name));
  const bool list = options.json && files.size() > 1;  // one document, whatever the number of plans
  std::string separator = "[";
  for (const PlanFile& file : files) {
    if (files.size() > 1 && !options.json) write_stdout(file.name + "\n");
    if (list) write_stdout(std::exchange(separator, ","));
    const std::string result = [&] {
      const Activity activity(fmt::format("running {}", file.name));
      return options.device == Device::cpu ? on_cpu(options, file) : on_gpus(options, file);
    }();
    write_stdout(result);
  }
  if (list) write_stdout("]\n");
  return 0;
}

}  // namespace ebb::replay::cli
