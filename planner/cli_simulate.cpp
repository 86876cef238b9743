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
#include "planner/host_plans.hpp"
#include "planner/prediction.hpp"
#include "reports/answer_json.hpp"
#include "reports/answer_text.hpp"
#include "reports/plan_times.hpp"

namespace ebb::cli {

namespace {

void write_timeline(std::span<const Plan> plans, std::span<const Timeline> timelines, const std::string& cluster,
                    const std::string& path) {
  TimelineFile file = prediction_of(plans, timelines, cluster);
  file.provenance = {{"ebb", EBB_VERSION}};
  write_file(path, to_json(file));
}

/// Options that describe a job's candidate say nothing about a plan.
void require_plan_options(const SimulateOptions& o) {
  const std::pair<const char*, bool> others[] = {{"--policy", o.candidate.policy.has_value()},
                                                 {"--chunk-numel", o.candidate.chunk_numel.has_value()},
                                                 {"--chunk-size-mb", o.candidate.chunk_size_mb.has_value()},
                                                 {"--fraction", o.candidate.fraction.has_value()},
                                                 {"--slots", o.candidate.slots.has_value()},
                                                 {"--budget", o.budget.has_value()},
                                                 {"--host-budget", o.host_budget.has_value()},
                                                 {"--life", o.life},
                                                 {"--gpus", o.gpus.has_value()},
                                                 {"-o", o.plan_file.has_value()}};
  for (const auto& [name, given] : others)
    if (given) throw InputError({name}, "a plan says this itself", "leave it out beside --plan");
  if (!o.cluster) throw InputError({"--plan"}, "a plan has no cluster of its own", "add --cluster NAME or FILE");
}

int simulate_plan(const SimulateOptions& options) {
  require_plan_options(options);
  const std::vector<Plan> plans = plans_from_json(read_text_file(*options.plan, kMostPlanBytes), *options.plan);
  const Cluster cluster =
      load_cluster(resolve(Library::clusters, *options.cluster, std::filesystem::current_path(), {"--cluster"}));
  const std::vector<Timeline> timelines = simulate_plans(plans, cluster, *options.plan);
  reports::PlanTimes report{plans.front().job, *options.plan, cluster.name, EBB_VERSION, {}};
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const RankTimeline rank = rank_timeline(plans[i], timelines[i]);
    report.ranks.push_back({rank.rank, to_seconds(rank.steps.front()), to_seconds(rank.updates.front()),
                            rank.memory.live_peak, rank.memory.pinned, rank.memory.pageable});
  }
  if (options.timeline_file) write_timeline(plans, timelines, cluster.name, *options.timeline_file);
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
  const HostPlans life = host_life(job, candidate);
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
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return 0;
}

}  // namespace

void write_host_plans(const Job& job, const Candidate& candidate, const std::optional<std::string>& plan_file,
                      const std::optional<std::string>& timeline_file) {
  if (!plan_file && !timeline_file) return;
  const HostPlans host = host_plans(job, candidate);
  if (plan_file) write_file(*plan_file, to_json(host.plans));
  if (timeline_file) write_timeline(host.plans, host.timelines, job.cluster.name, *timeline_file);
}

int run_simulate(const SimulateOptions& options) {
  if (options.plan) return simulate_plan(options);
  if (options.job.empty()) throw InputError({}, "JOB is required", "see ebb simulate --help");
  Job job = load_job_argument(options.job, options.settings);
  set_budgets(job, options.budget, options.host_budget);
  if (options.gpus) job.parallel.gpus = parse_gpus(*options.gpus);
  check(job);
  const Candidate candidate = candidate_from(options.candidate, job);
  if (options.life) return simulate_life(options, job, candidate);
  const Answer answer = evaluate(job, candidate);
  reports::SimulateReport report;
  report.header = header_of(job);
  report.candidate = report_of(answer);
  const Life life = life_of(job, answer);
  report.phases = report_of(life);
  report.host_limits = life.host_limits;
  write_host_plans(job, candidate, options.plan_file, options.timeline_file);
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return 0;
}

}  // namespace ebb::cli
