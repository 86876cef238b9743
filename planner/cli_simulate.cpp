// `ebb simulate JOB --policy P ...`: one candidate, every phase of the job's life. Exit 0 whether it fits or not: the
// answer says so.
#include "models/plan_json.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/host_plans.hpp"
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
  const Life life = life_of(job, answer);
  report.phases = report_of(life);
  report.host_limits = life.host_limits;
  if (options.plan_file) write_file(*options.plan_file, to_json(host_plans(job, candidate).plans));
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return 0;
}

}  // namespace ebb::cli
