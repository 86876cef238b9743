// `ebb explain JOB [--phase P] [--megatron M] [--objective O] [--robust]`: where the numbers come from. Without a
// phase: where the step goes, what decides it, and what would change the answer (explain.hpp), and each phase of the
// job's life with its peak. For one phase: what is alive at its peak, how that comes about, and the curve of live bytes
// over the step.
#include <algorithm>
#include <utility>

#include "models/nearest.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/cli_talk.hpp"
#include "planner/explain.hpp"
#include "planner/life.hpp"
#include "planner/recommend.hpp"
#include "planner/robust.hpp"
#include "reports/answer_json.hpp"
#include "reports/answer_text.hpp"
#include "reports/explain.hpp"

namespace ebb::cli {

namespace {

struct Choice {
  Candidate candidate;
  std::string why;
  std::optional<Answer> recommended;  // by `ebb plan`; looked for only where it is needed
};

/// The command line's, else what `ebb plan` recommends (or, when nothing fits, what needs least).
Choice choose(const Job& job, const ExplainOptions& options, const SearchOptions& how, std::optional<Start> also_as) {
  Choice choice;
  if (options.candidate.policy) {
    choice.candidate = candidate_from(options.candidate, job);
    choice.why = "as asked for";
    if (options.phase) return choice;
  }
  if (!options.candidate.policy) remark_on_chunk(job);
  const SearchResult result = shown_search(job, how, also_as);
  if (result.recommended) choice.recommended = result.candidates[*result.recommended];
  if (options.candidate.policy) return choice;
  if (choice.recommended) return {choice.recommended->candidate, "as ebb plan recommends", choice.recommended};
  const auto least =
      std::min_element(result.candidates.begin(), result.candidates.end(), [&](const Answer& a, const Answer& b) {
        // First what the question is about: the others are no help to the job, or to the Megatron asked for.
        const auto rank = [&](const Answer& answer) {
          return std::pair(!in_question(answer, job.offload.policy), answer.device_reserved);
        };
        return rank(a) < rank(b);
      });
  return {least->candidate, "nothing fits: this needs least", std::nullopt};
}

/// With what the Megatron asked for says of it.
Answer evaluated(const Job& job, const Candidate& candidate, Megatron megatron, std::optional<Start> also_as) {
  Answer answer = evaluate(job, candidate, also_as);
  if (accepts(megatron, candidate.policy)) return answer;
  answer.deployable = false;
  answer.reason = obstacle_of(answer, device_budget_of(job), host_budget_of(job));
  return answer;
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
  SearchOptions how;
  how.cures = false;
  how.likely = true;  // as `ebb plan`, so that what does not fit needs the same here
  if (options.megatron) how.megatron = parse_megatron(*options.megatron, Place{"--megatron"});
  if (options.objective) how.objective = objective_named(*options.objective).value();
  Job job = load_job_argument(options.job, options.settings);
  set_budgets(job, options.budget, options.host_budget);
  check(job, how.megatron);
  reports::ExplainReport report;
  if (options.phase) report.phase = phase_named(*options.phase);
  std::optional<Start> also_as;
  if (options.robust) {
    also_as = job.checkpoint.start;
    job = at_its_worst(job, report.worst_case);
  }
  const Choice choice = choose(job, options, how, also_as);
  const Answer answer = evaluated(job, choice.candidate, how.megatron, also_as);
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
  } else {
    report.explanation = explain(job, answer, choice.recommended, how, also_as);
  }
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return 0;
}

}  // namespace ebb::cli
