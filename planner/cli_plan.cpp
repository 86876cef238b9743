// `ebb plan JOB`: the flags to paste.
#include <fmt/format.h>

#include "models/quantity_text.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "reports/answer_json.hpp"
#include "reports/answer_text.hpp"

namespace ebb::cli {

namespace {

std::string simulate_command(const PlanOptions& options, const reports::Candidate& pick) {
  std::string command = fmt::format("ebb simulate {} --policy {}", quoted(options.job), pick.policy);
  if (pick.chunk_numel) command += fmt::format(" --chunk-numel {}", pick.chunk_numel->value);
  if (pick.chunk_size_mb) command += fmt::format(" --chunk-size-mb {}", *pick.chunk_size_mb);
  if (pick.fraction) command += fmt::format(" --fraction {}", *pick.fraction);
  if (pick.slots) command += fmt::format(" --slots {}", *pick.slots);
  if (options.budget) command += fmt::format(" --budget {}", quoted(*options.budget));
  if (options.host_budget) command += fmt::format(" --host-budget {}", quoted(*options.host_budget));
  return command;
}

}  // namespace

int run_plan(const PlanOptions& options) {
  SearchOptions how;
  if (options.megatron) how.megatron = parse_megatron(*options.megatron, Place{"--megatron"});
  Job job = load_job_argument(options.job, options.settings);
  set_budgets(job, options.budget, options.host_budget);
  check(job, how.megatron);

  how.likely = true;
  const SearchResult result = search(job, how);
  reports::PlanReport report;
  report.header = header_of(job);
  report.recommended = result.recommended;
  for (const Answer& answer : result.candidates) report.candidates.push_back(report_of(answer));
  report.shortfall = result.shortfall;
  report.cures = result.cures;
  if (result.recommended)
    report.next_command =
        simulate_command(options, report.candidates[*result.recommended]) + "   (memory and time phase by phase)";

  if (result.recommended)
    write_host_plans(job, result.candidates[*result.recommended].candidate, options.plan_file, options.timeline_file);
  else
    for (const auto& file : {options.plan_file, options.timeline_file})
      if (file) fmt::print(stderr, "ebb: nothing fits, so nothing was written to {}\n", *file);
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return result.recommended ? 0 : 1;
}

}  // namespace ebb::cli
