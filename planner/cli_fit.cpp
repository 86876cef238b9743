// `ebb fit JOB --max sequence`: how far a job can go before it does not fit. Exit 1: it fits at no value.
#include <fmt/format.h>

#include "models/errors.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/cli_talk.hpp"
#include "planner/fit.hpp"
#include "planner/paste_command.hpp"
#include "reports/fit_json.hpp"
#include "reports/fit_text.hpp"

namespace ebb::cli {

namespace {

FitGoal goal_of(const FitOptions& options) {
  // The command line takes no other words than these.
  if (options.max) return fit_goal_named(*options.max).value();
  if (options.min) return fit_goal_named(*options.min).value();
  throw InputError({}, "fit needs a goal", "give --max sequence, micro-batch or layers, or --min gpus or host-memory");
}

std::int64_t own_value(const Job& job, FitGoal goal) {
  switch (goal) {
    case FitGoal::sequence:
      return job.batch.sequence;
    case FitGoal::micro_batch:
      return job.batch.micro;
    case FitGoal::layers:
      return job.model.layers;
    case FitGoal::gpus:
      return job.parallel.gpus;
    case FitGoal::host_memory:
      break;
  }
  return 0;
}

/// The key that `--set` changes to the goal's value; "" for none.
const char* key_of(FitGoal goal) {
  switch (goal) {
    case FitGoal::sequence:
      return "batch.sequence";
    case FitGoal::micro_batch:
      return "batch.micro";
    case FitGoal::layers:
      return "model.layers";
    case FitGoal::gpus:
      return "parallel.gpus";
    case FitGoal::host_memory:
      break;
  }
  return "";
}

std::string plan_command(const FitOptions& options, FitGoal goal, const FitLimit& limit) {
  if (!limit.fits || goal == FitGoal::host_memory) return "";
  return PasteCommand("plan", {options.job})
      .add("--set", options.settings)
      .add("--set", fmt::format("{}={}", key_of(goal), limit.fits->value))
      .add("--budget", options.budget)
      .add("--host-budget", options.host_budget)
      .add("--megatron", options.megatron)
      .text();
}

std::optional<reports::FitPoint> point_report(const std::optional<FitPoint>& point) {
  if (!point) return std::nullopt;
  reports::FitPoint report{.value = point->value,
                           .candidate = std::nullopt,
                           .obstacle = point->obstacle,
                           .decides = std::string(name_of(point->stop))};
  if (point->answer) report.candidate = report_of(*point->answer);
  return report;
}

}  // namespace

int run_fit(const FitOptions& options) {
  const FitGoal goal = goal_of(options);
  Megatron megatron = Megatron::any;
  if (options.megatron) megatron = parse_megatron(*options.megatron, Place{"--megatron"});
  Job job = load_job_argument(options.job, options.settings);
  set_budgets(job, options.budget, options.host_budget);
  check(job, megatron);
  remark_on_chunk(job);
  const FitResult result = [&] {
    const Activity activity("fit");
    return fit(job, goal, megatron);
  }();
  reports::FitReport report{.header = header_of(job),
                            .goal = std::string(name_of(goal)),
                            .largest = options.max.has_value(),
                            .own = own_value(job, goal),
                            .step = result.step,
                            .limits = {},
                            .notes = result.notes,
                            .next_command = plan_command(options, goal, result.limits.front())};
  for (const FitLimit& limit : result.limits)
    report.limits.push_back({limit.offload, point_report(limit.fits), point_report(limit.breaks)});
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return result.limits.front().fits ? 0 : 1;
}

}  // namespace ebb::cli
