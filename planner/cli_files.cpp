// Files beside an answer: plans for a replay, predicted timelines, traces.
#include <fmt/format.h>

#include "models/plan_json.hpp"
#include "models/text_file.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/cli_talk.hpp"
#include "planner/host_plans.hpp"
#include "planner/prediction.hpp"
#include "reports/trace.hpp"

namespace ebb::cli {

namespace {

/// The run in `file`, which must be one of exactly these plans.
TimelineFile load_measured(std::span<const Plan> plans, const std::string& file) {
  TimelineFile measured = timeline_file_from_json(read_text_file(file, kMostPlanBytes), file);
  require_run(measured, file);
  bool fits = measured.plan_digest == digest_of(plans) && measured.ranks.size() == plans.size();
  for (std::size_t i = 0; fits && i < plans.size(); ++i)
    fits = measured.ranks[i].rank == plans[i].rank && measured.ranks[i].ops.size() == plans[i].ops.size();
  if (!fits)
    throw InputError({file}, fmt::format("it is of plan {}, not of this one", measured.plan_digest),
                     "write the plan with -o FILE and run it: ebb-replay run FILE -o " + file);
  return measured;
}

}  // namespace

void require_run(const TimelineFile& timeline, const std::string& name) {
  if (timeline.source != TimelineSource::measured)
    throw InputError(Place{name}, "this is a prediction, not a run", "give the timeline that ebb-replay run wrote");
}

void require_prediction(const TimelineFile& timeline, const std::string& name) {
  if (timeline.source != TimelineSource::predicted)
    throw InputError(Place{name}, "this is a run, not a prediction",
                     "give the timeline that ebb simulate --timeline wrote");
}

void check_trace_options(const std::optional<std::string>& trace, const std::optional<std::string>& html,
                         const std::optional<std::string>& measured) {
  if (trace) reports::trace_format_of(*trace);
  if (measured && !trace && !html)
    throw InputError({"--measured"}, "it is shown in a trace or a report", "add --trace FILE or --html FILE");
}

void write_timeline(std::span<const Plan> plans, std::span<const Timeline> timelines, const std::string& cluster,
                    const std::string& path) {
  TimelineFile file = prediction_of(plans, timelines, cluster);
  file.provenance = {{"ebb", EBB_VERSION}};
  write_file(path, to_json(file));
}

void write_trace(std::span<const Plan> plans, std::span<const Timeline> timelines,
                 const std::optional<std::string>& measured, const std::string& path) {
  std::vector<Timeline> runs;
  if (measured) {
    const TimelineFile file = load_measured(plans, *measured);
    for (const RankTimeline& rank : file.ranks) runs.push_back(reports::timeline_of(rank, file.source));
  }
  std::vector<reports::TracedPlan> parts;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    parts.push_back({&plans[i], &timelines[i]});
    if (measured) parts.push_back({&plans[i], &runs[i]});
  }
  reports::write_trace(parts, path, "ebb " EBB_VERSION);
}

void write_host_files(const Job& job, const Candidate& candidate, const HostFiles& files) {
  if (!files.plan && !files.timeline && !files.trace) return;
  const HostPlans host = [&] {
    const Activity activity("planning the host");
    return host_plans(job, candidate);
  }();
  if (files.plan) write_file(*files.plan, to_json(host.plans));
  if (files.timeline) write_timeline(host.plans, host.timelines, job.cluster.name, *files.timeline);
  if (files.trace) write_trace(host.plans, host.timelines, files.measured, *files.trace);
}

}  // namespace ebb::cli
