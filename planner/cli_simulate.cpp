// `ebb simulate JOB --policy P ...`: one candidate, phase by phase. Exit 0 whether it fits or not: the answer says so.
#include "models/plan_json.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "reports/answer_json.hpp"
#include "reports/answer_text.hpp"

namespace ebb::cli {

int run_simulate(const SimulateOptions& options) {
  Job job = load_job_argument(options.job);
  set_budgets(job, options.budget, options.host_budget);
  check(job);
  const Candidate candidate = candidate_from(options.candidate, job);
  const Answer answer = evaluate(job, candidate);
  reports::SimulateReport report;
  report.header = header_of(job);
  report.candidate = report_of(answer);
  for (const PhaseAnswer& phase : answer.phases)
    report.phases.push_back({std::string(name_of(phase.phase)), phase.duration, phase.device_peak,
                             phase.device_reserved, phase.host_pinned});
  if (options.plan_file) write_file(*options.plan_file, to_json(plan_of(job, candidate)));
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return 0;
}

}  // namespace ebb::cli
