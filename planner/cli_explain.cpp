// `ebb explain JOB [--phase P]`: where the numbers come from. Each phase of the job's life with its peak; for one
// phase, what is alive at its peak, how that comes about, and the curve of live bytes over the step.
#include <algorithm>

#include "models/nearest.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/life.hpp"
#include "reports/answer_json.hpp"
#include "reports/answer_text.hpp"

namespace ebb::cli {

namespace {

struct Choice {
  Candidate candidate;
  std::string why;
};

/// The command line's, else what `ebb plan` recommends (or, when nothing fits, what needs least).
Choice choose(const Job& job, const CandidateOptions& options) {
  if (options.policy) return {candidate_from(options, job), "as asked for"};
  SearchOptions how;
  how.cures = false;
  const SearchResult result = search(job, how);
  if (result.recommended) return {result.candidates[*result.recommended].candidate, "as ebb plan recommends"};
  const auto least =
      std::min_element(result.candidates.begin(), result.candidates.end(),
                       [](const Answer& a, const Answer& b) { return a.device_reserved < b.device_reserved; });
  return {least->candidate, "nothing fits: this needs least"};
}

std::string phase_named(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  std::vector<std::string> known;
  for (int i = 0; i < kPhaseCount; ++i) known.emplace_back(name_of(static_cast<Phase>(i)));
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw InputError(Place{"--phase"}, "unknown phase \"" + name.substr(0, 40) + "\"",
                     did_you_mean(name, known, "phases"));
  return name;
}

}  // namespace

int run_explain(const ExplainOptions& options) {
  Job job = load_job_argument(options.job, options.settings);
  set_budgets(job, options.budget, options.host_budget);
  check(job);
  reports::ExplainReport report;
  if (options.phase) report.phase = phase_named(*options.phase);
  const Choice choice = choose(job, options.candidate);
  const Answer answer = evaluate(job, choice.candidate);
  const Life life = life_of(job, answer);
  report.header = header_of(job);
  report.candidate = report_of(answer);
  report.chosen = choice.why;
  report.phases = report_of(life);
  report.curve = curve_of(job, life);
  if (report.phase) {
    std::erase_if(report.phases, [&](const reports::Phase& phase) { return phase.name != *report.phase; });
    if (report.phases.empty())
      throw InputError(Place{"--phase"}, "this job has no phase \"" + *report.phase + "\"",
                       "ebb explain without --phase lists those it has");
  }
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return 0;
}

}  // namespace ebb::cli
