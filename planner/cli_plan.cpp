// `ebb plan JOB`: the flags to paste.
#include <fmt/format.h>

#include "models/quantity_text.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/cli_talk.hpp"
#include "planner/html_report.hpp"
#include "planner/paste_command.hpp"
#include "planner/paste_forms.hpp"
#include "planner/recommend.hpp"
#include "planner/robust.hpp"
#include "reports/answer_json.hpp"
#include "reports/answer_text.hpp"
#include "reports/wrap.hpp"

namespace ebb::cli {

namespace {

std::string simulate_command(const PlanOptions& options, const reports::Candidate& pick) {
  return PasteCommand("simulate", {options.job})
      .add("--policy", pick.policy)
      .add("--chunk-numel", pick.chunk_numel)
      .add("--chunk-size-mb", pick.chunk_size_mb)
      .add("--fraction", pick.fraction)
      .add("--slots", pick.slots)
      .add("--cap", pick.cap)
      .add("--budget", options.budget)
      .add("--host-budget", options.host_budget)
      .add("--robust", options.robust)
      .add("--set", options.settings)
      .text();
}

std::string commented(const std::string& note) {
  std::string text = reports::wrapped(note, 0, "", reports::kColumns - 2);
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n') + 1;
    lines.append("# ").append(text.substr(0, end));
    text.erase(0, end);
  }
  return lines;
}

/// Only the settings, in one form; what they need to be true stands behind them as comments.
std::string form_text(const reports::Candidate& pick, const std::string& format) {
  std::string text;
  for (const reports::PasteForm& form : pick.forms) {
    if (form.format != format) continue;
    // Overrides are arguments: lines of one command.
    const bool arguments = format == "bridge" || format == "verl";
    for (const std::string& line : form.lines)
      text.append(line).append(arguments && &line != &form.lines.back() ? " \\\n" : "\n");
    for (const std::string& note : form.notes) text += commented(note);
  }
  return text;
}

}  // namespace

int run_plan(const PlanOptions& options) {
  if (options.format && options.json)
    throw InputError({"--format"}, "a JSON document holds every form: recommendation.forms",
                     "leave out --format or --json");
  check_outputs({options.job, options.measured_file.value_or("")}, {{"-o", options.plan_file},
                                                                    {"--timeline", options.timeline_file},
                                                                    {"--trace", options.trace_file},
                                                                    {"--html", options.html_file}});
  check_trace_options(options.trace_file, options.html_file, options.measured_file);
  SearchOptions how;
  if (options.megatron) how.megatron = parse_megatron(*options.megatron, Place{"--megatron"});
  Job job = load_job_argument(options.job, options.settings);
  set_budgets(job, options.budget, options.host_budget);
  check(job, how.megatron);
  remark_on_chunk(job);
  if (options.objective) how.objective = objective_named(*options.objective).value();
  reports::PlanReport report;
  report.objective = name_of(how.objective);
  if (how.megatron != Megatron::any) report.megatron = name_of(how.megatron);
  const Start start = job.checkpoint.start;
  if (options.robust) job = at_its_worst(job, report.worst_case);

  how.likely = true;
  how.front = how.resume = options.json || options.html_file;
  const SearchResult result = shown_search(job, how, options.robust ? std::optional(start) : std::nullopt);
  report.header = header_of(job);
  report.recommended = result.recommended;
  for (const Answer& answer : result.candidates) report.candidates.push_back(report_of(answer));
  for (const Answer& answer : result.front) report.front.push_back(report_of(answer));
  report.shortfall = result.shortfall;
  report.cures = result.cures;
  if (result.recommended) report.next_command = simulate_command(options, report.candidates[*result.recommended]);

  if (result.recommended)
    write_host_files(job, result.candidates[*result.recommended].candidate,
                     {options.plan_file, options.timeline_file, options.trace_file, options.measured_file});
  else
    for (const auto& file : {options.plan_file, options.timeline_file, options.trace_file})
      if (file) remark(fmt::format("nothing fits, so nothing was written to {}", *file));
  if (options.html_file)
    write_file(
        *options.html_file,
        reports::to_html(html_report({job, options.measured_file, html_command(options), report.worst_case}, report)));
  const reports::Style style = reports::style_of(1);
  if (options.json)
    write_stdout(reports::to_json(report));
  else if (options.format && result.recommended)
    write_stdout(form_text(report.candidates[*result.recommended], *options.format));
  else
    write_stdout(options.all ? reports::to_wide_text(report, style) : reports::to_text(report, style));
  return result.recommended ? 0 : 1;
}

}  // namespace ebb::cli
