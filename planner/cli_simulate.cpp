// `ebb simulate JOB --policy P ...`: one candidate, every phase of the job's life. Exit 0 whether it fits or not: the
// answer says so. `ebb simulate --plan FILE --cluster NAME`: a plan that is there already, as that cluster would run
// it. `--life`: plans of every part of the job's life, and what each holds and takes.
#include <fmt/format.h>

#include <cmath>

#include "models/cluster_yaml.hpp"
#include "models/library.hpp"
#include "models/plan_json.hpp"
#include "models/text_file.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/cli_talk.hpp"
#include "planner/host_plans.hpp"
#include "planner/html_report.hpp"
#include "planner/prediction.hpp"
#include "planner/robust.hpp"
#include "reports/answer_json.hpp"
#include "reports/answer_text.hpp"
#include "reports/plan_times.hpp"

namespace ebb::cli {

namespace {

/// Options that describe a job's candidate say nothing about a plan.
void require_plan_options(const SimulateOptions& o) {
  const std::pair<const char*, bool> others[] = {{"--policy", o.candidate.policy.has_value()},
                                                 {"--chunk-numel", o.candidate.chunk_numel.has_value()},
                                                 {"--chunk-size-mb", o.candidate.chunk_size_mb.has_value()},
                                                 {"--fraction", o.candidate.fraction.has_value()},
                                                 {"--slots", o.candidate.slots.has_value()},
                                                 {"--cap", o.candidate.cap.has_value()},
                                                 {"--budget", o.budget.has_value()},
                                                 {"--host-budget", o.host_budget.has_value()},
                                                 {"--robust", o.robust},
                                                 {"--life", o.life},
                                                 {"--gpus", o.gpus.has_value()},
                                                 {"-o", o.plan_file.has_value()},
                                                 {"--html", o.html_file.has_value()}};
  for (const auto& [name, given] : others)
    if (given) throw InputError({name}, "a plan says this itself", "leave it out beside --plan");
  if (!o.cluster) throw InputError({"--plan"}, "a plan has no cluster of its own", "add --cluster NAME or FILE");
}

std::vector<Plan> read_plans(const std::string& file) {
  const Activity activity(fmt::format("reading {}", file));
  return plans_from_json(read_text_file(file, kMostPlanBytes), file);
}

int simulate_plan(const SimulateOptions& options) {
  require_plan_options(options);
  const std::vector<Plan> plans = read_plans(*options.plan);
  const Cluster cluster =
      load_cluster(resolve(Library::clusters, *options.cluster, std::filesystem::current_path(), {"--cluster"}));
  const std::vector<Timeline> timelines = [&] {
    const Activity activity("simulation");
    return simulate_plans(plans, cluster, *options.plan);
  }();
  reports::PlanTimes report{plans.front().job, *options.plan, cluster.name, EBB_VERSION, {}};
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const RankTimeline rank = rank_timeline(plans[i], timelines[i]);
    report.ranks.push_back({rank.rank, to_seconds(rank.steps.front()), to_seconds(rank.updates.front()),
                            rank.memory.live_peak, rank.memory.pinned, rank.memory.pageable});
  }
  if (options.timeline_file) write_timeline(plans, timelines, cluster.name, *options.timeline_file);
  if (options.trace_file) write_trace(plans, timelines, options.measured_file, *options.trace_file);
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return 0;
}

Bytes checkpoint_bytes(const Plan& plan) {
  Bytes sum{0};
  for (const Op& op : plan.ops)
    if (op.work == Work::store || op.work == Work::fetch) sum += op.bytes;
  return sum;
}

int simulate_life(const SimulateOptions& options, const Job& job, const Candidate& candidate) {
  if (options.timeline_file)
    throw InputError({"--timeline"}, "a life has a timeline for each of its parts", "leave it out beside --life");
  if (options.measured_file)
    throw InputError({"--measured"}, "ebb-replay measures a step, not a life", "leave it out beside --life");
  if (options.html_file)
    throw InputError({"--html"}, "a page shows the phases of a life, not its parts", "leave out --life or --html");
  const HostPlans life = [&] {
    const Activity activity("planning the life");
    return host_life(job, candidate);
  }();
  reports::LifeTimes report;
  report.job = job.name;
  report.policy = name_of(candidate.policy);
  report.cluster = job.cluster.name;
  report.ebb_version = EBB_VERSION;
  report.storage_known =
      std::isfinite(job.cluster.storage.read.value.value) && std::isfinite(job.cluster.storage.write.value.value);
  for (std::size_t i = 0; i < life.plans.size(); ++i) {
    const Plan& plan = life.plans[i];
    const RankTimeline rank = rank_timeline(plan, life.timelines[i]);
    report.parts.push_back({plan.rank, std::string(name_of(plan.part)), to_seconds(rank.steps.front()),
                            rank.memory.live_peak, checkpoint_bytes(plan)});
  }
  if (options.plan_file) write_file(*options.plan_file, to_json(life.plans));
  if (options.trace_file) write_trace(life.plans, life.timelines, {}, *options.trace_file);
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return 0;
}

}  // namespace

int run_simulate(const SimulateOptions& options) {
  check_outputs({options.job, options.plan.value_or(""), options.measured_file.value_or("")},
                {{"-o", options.plan_file},
                 {"--timeline", options.timeline_file},
                 {"--trace", options.trace_file},
                 {"--html", options.html_file}});
  check_trace_options(options.trace_file, options.html_file, options.measured_file);
  if (options.plan) return simulate_plan(options);
  if (options.job.empty()) throw InputError({}, "JOB is required", "see ebb simulate --help");
  Job job = load_job_argument(options.job, options.settings);
  set_budgets(job, options.budget, options.host_budget);
  if (options.gpus) job.parallel.gpus = parse_gpus(*options.gpus);
  check(job);
  const Candidate candidate = candidate_from(options.candidate, job);
  reports::SimulateReport report;
  const Start start = job.checkpoint.start;
  if (options.robust) job = at_its_worst(job, report.worst_case);
  if (options.life) return simulate_life(options, job, candidate);
  const Answer answer = [&] {
    const Activity activity("simulation");
    return evaluate(job, candidate, start);
  }();
  report.header = header_of(job);
  report.candidate = report_of(answer);
  const Life life = life_of(job, answer);
  report.phases = report_of(life);
  report.host_limits = life.host_limits;
  write_host_files(job, candidate,
                   {options.plan_file, options.timeline_file, options.trace_file, options.measured_file});
  if (options.html_file)
    write_file(
        *options.html_file,
        reports::to_html(html_report({job, options.measured_file, html_command(options), report.worst_case}, report)));
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return 0;
}

}  // namespace ebb::cli
