// `ebb score FILE`: recorded runs against what Ebb predicts. Exit 0 whatever the errors are: the answer says them.
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/cli_talk.hpp"
#include "planner/score.hpp"
#include "reports/score_json.hpp"
#include "reports/score_text.hpp"

namespace ebb::cli {

namespace {

/// The terms that are there, largest kinds of tensors as MemoryTerm orders them, and what the allocator rounds up.
std::vector<reports::NamedBytes> named(const TermAccount& account, Bytes allocated) {
  std::vector<reports::NamedBytes> terms;
  for (std::size_t i = 0; i < kMemoryTerms; ++i)
    if (account.bytes[i].value > 0)
      terms.push_back({std::string(name_of(static_cast<MemoryTerm>(i))), account.bytes[i]});
  terms.push_back({"allocator rounding", allocated - account.total()});
  return terms;
}

reports::ScoreCase report_of(const ScoredRun& scored) {
  const RecordedRun& run = *scored.run;
  reports::ScoreCase c;
  c.id = run.id;
  c.reason = scored.reason;
  c.recorded_allocated = run.allocated;
  c.recorded_peak = run.peak;
  c.recorded_iteration = run.iteration;
  c.traits = scored.traits;
  c.unheeded = scored.unheeded;
  if (!scored.modelled()) return c;
  c.predicted_allocated = scored.allocated;
  c.predicted_peak = scored.peak;
  c.predicted_iteration = scored.iteration;
  c.terms = named(scored.between, scored.allocated);
  c.peak_terms = named(scored.at_peak, scored.peak);
  return c;
}

std::vector<ScoredRun> scored_runs(const std::vector<RecordedRun>& runs) {
  Activity activity("score");
  return score(runs, activity.hook());
}

}  // namespace

int run_score(const ScoreOptions& options) {
  const std::vector<RecordedRun> runs = load_recorded_runs(options.file);
  reports::ScoreReport report;
  report.file = options.file;
  report.ebb_version = EBB_VERSION;
  for (const ScoredRun& scored : scored_runs(runs)) report.cases.push_back(report_of(scored));
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return 0;
}

}  // namespace ebb::cli
