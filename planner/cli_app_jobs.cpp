// Commands that start from a job: plan, simulate, explain, fit, sweep, check, layout.
#include "models/plan.hpp"
#include "models/policy.hpp"
#include "planner/cli_app.hpp"
#include "planner/fit.hpp"
#include "planner/flags.hpp"
#include "planner/paste_forms.hpp"
#include "planner/recommend.hpp"

namespace ebb::cli {

namespace {

std::vector<std::string> policy_words() {
  std::vector<std::string> words;
  for (const Policy policy : kPolicies) words.emplace_back(name_of(policy));
  return words;
}

std::vector<std::string> phase_words() {
  std::vector<std::string> words;
  for (int i = 0; i < kPhaseCount; ++i) words.emplace_back(name_of(static_cast<Phase>(i)));
  return words;
}

void add_chunking(CLI::App& command, CandidateOptions& o) {
  add_choice(command, "--policy", o.policy, "how state moves", "POLICY", policy_words());
  add_text(command, "--chunk-numel", o.chunk_numel, "elements in a chunk, e.g. 1e9 (chunked, pipelined, tidal)", "N");
  add_text(command, "--chunk-size-mb", o.chunk_size_mb, "MiB of moments in a chunk, 0: all (windowed)", "M");
}

void add_budgets(CLI::App& command, std::optional<std::string>& device, std::optional<std::string>& host) {
  add_text(command, "--budget", device, "device memory a GPU may use, e.g. 60GiB", "SIZE");
  add_text(command, "--host-budget", host, "memory of a host that the job may use, pinned and pageable, e.g. 1.5TiB",
           "SIZE");
}

void add_megatron(CLI::App& command, std::optional<std::string>& megatron) {
  std::vector<std::string> words;
  for (const Megatron which : {Megatron::any, Megatron::main, Megatron::dev, Megatron::pr6544})
    words.emplace_back(name_of(which));
  add_choice(command, "--megatron", megatron, "the Megatron-LM you run (default any)", "WHICH", words);
}

void add_objective(CLI::App& command, std::optional<std::string>& objective) {
  add_choice(command, "--objective", objective, "what is best (default step)", "WHAT", {"step", "memory", "balanced"});
}

void add_robust(CLI::App& command, bool& robust) {
  command.add_flag("--robust", robust, "hold against the worst of every figure, not the likely one");
}

void add_trace_and_html(CLI::App& command, std::optional<std::string>& trace, std::optional<std::string>& html,
                        std::optional<std::string>& measured) {
  add_text(command, "--trace", trace, "also write a trace: .pftrace (Perfetto) or .json (Chrome)", "FILE");
  add_text(command, "--html", html, "also write a report as one HTML page", "FILE");
  add_text(command, "--measured", measured, "with --html or --trace: a timeline of ebb-replay run, shown beside",
           "FILE");
}

void add_plan(CommandLine& line) {
  PlanOptions& o = line.plan;
  CLI::App* command = line.app.add_subcommand("plan", "Which flags for this job: the fastest schedule that fits");
  add_job(*command, o.job);
  add_budgets(*command, o.budget, o.host_budget);
  add_megatron(*command, o.megatron);
  add_objective(*command, o.objective);
  add_robust(*command, o.robust);
  add_settings(*command, o.settings);
  add_choice(*command, "--format", o.format, "only the settings, to paste", "FORM", reports::words_of(kPasteForms));
  command->add_flag("--all", o.all, "every row and column");
  add_json(*command, o.json);
  add_text(*command, "-o", o.plan_file, "also write the recommended schedule of the slowest host as a plan", "FILE");
  add_text(*command, "--timeline", o.timeline_file, "also write when each of its operations would run", "FILE");
  add_trace_and_html(*command, o.trace_file, o.html_file, o.measured_file);
  command->footer(
      "Examples: ebb plan models/jobs/llama3-8b-hgx-h200.yaml --budget 139GiB --megatron dev\n"
      "          ebb plan train.sh --set parallel.tensor=2 --objective memory\n"
      "Exit 1: nothing fits");
  command->callback([&line] { line.chosen = line.plan; });
}

void add_simulate(CommandLine& line) {
  SimulateOptions& o = line.simulate;
  CLI::App* command = line.app.add_subcommand("simulate", "Memory and time of one policy, phase by phase");
  CLI::Option* job =
      command->add_option("JOB", o.job, "job file, Megatron-LM launch script or arguments, or config.json")
          ->type_name("JOB");
  add_text(*command, "--plan", o.plan, "instead of JOB: time of a plan file, on --cluster", "FILE");
  add_text(*command, "--cluster", o.cluster, "with --plan: whose figures, e.g. a calibrated cluster.yaml", "CLUSTER");
  command->get_option("--plan")->excludes(job);
  command->get_option("--cluster")->needs("--plan");
  add_chunking(*command, o.candidate);
  add_text(*command, "--fraction", o.candidate.fraction,
           "part of the state that moves, 0 < F <= 1 (windowed, cpu-adam)", "F");
  add_text(*command, "--slots", o.candidate.slots, "device slots, 2 or more (pipelined)", "D");
  add_text(*command, "--cap", o.candidate.cap, "device memory that live bytes stay below (tidal)", "BYTES");
  add_budgets(*command, o.budget, o.host_budget);
  add_robust(*command, o.robust);
  add_settings(*command, o.settings);
  add_json(*command, o.json);
  add_text(*command, "-o", o.plan_file, "also write the slowest host's schedule as a plan", "FILE");
  add_text(*command, "--timeline", o.timeline_file, "also write when each of its operations would run", "FILE");
  add_trace_and_html(*command, o.trace_file, o.html_file, o.measured_file);
  command->add_flag("--life", o.life, "plans of every part of the job's life: init, load, steps, skips, save");
  add_text(*command, "--gpus", o.gpus, "instead of the job's own number", "N");
  command->footer(
      "Examples: ebb simulate models/jobs/llama3-8b-hgx-h200.yaml --policy chunked --chunk-numel 1e9\n"
      "          ebb simulate job.yaml --policy pipelined --chunk-numel 4194304 --slots 4 -o plan.json\n"
      "          ebb simulate --plan plan.json --cluster cluster.yaml --timeline predicted.json");
  command->callback([&line] { line.chosen = line.simulate; });
}

void add_explain(CommandLine& line) {
  ExplainOptions& o = line.explain;
  CLI::App* command = line.app.add_subcommand("explain", "What a number consists of: the terms of a phase's peak");
  add_job(*command, o.job);
  add_choice(*command, "--phase", o.phase, "take this one apart", "PHASE", phase_words());
  add_chunking(*command, o.candidate);
  add_text(*command, "--fraction", o.candidate.fraction, "part of the state that moves (windowed, cpu-adam)", "F");
  add_text(*command, "--slots", o.candidate.slots, "device slots, 2 or more (pipelined)", "D");
  add_text(*command, "--cap", o.candidate.cap, "device memory that live bytes stay below (tidal)", "BYTES");
  add_budgets(*command, o.budget, o.host_budget);
  add_megatron(*command, o.megatron);
  add_objective(*command, o.objective);
  add_robust(*command, o.robust);
  add_settings(*command, o.settings);
  add_json(*command, o.json);
  command->footer("Example: ebb explain models/jobs/llama3-8b-hgx-h200.yaml --phase step");
  command->callback([&line] { line.chosen = line.explain; });
}

void add_fit(CommandLine& line) {
  FitOptions& o = line.fit;
  CLI::App* command = line.app.add_subcommand("fit", "How far the job can go before it does not fit");
  add_job(*command, o.job);
  add_choice(*command, "--max", o.max, "the most that fits", "WHAT", fit_goal_words(true));
  add_choice(*command, "--min", o.min, "the least that does", "WHAT", fit_goal_words(false));
  command->get_option("--max")->excludes("--min");
  add_budgets(*command, o.budget, o.host_budget);
  add_megatron(*command, o.megatron);
  add_settings(*command, o.settings);
  add_json(*command, o.json);
  command->footer(
      "Examples: ebb fit models/jobs/llama3-8b-hgx-h200.yaml --max sequence\n"
      "          ebb fit models/jobs/llama3-8b-hgx-h200.yaml --min host-memory --megatron dev\n"
      "Exit 1: nothing fits");
  command->callback([&line] { line.chosen = line.fit; });
}

void add_sweep(CommandLine& line) {
  SweepOptions& o = line.sweep;
  CLI::App* command = line.app.add_subcommand("sweep", "One answer for every combination of values, as a table");
  add_job(*command, o.job);
  command->add_option("--set", o.settings, "KEY=V1,V2,... or KEY=A..B:STEP; several: every combination")
      ->type_name("KEY=VALUES")
      ->allow_extra_args(false)
      ->required();
  add_chunking(*command, o.candidate);
  add_text(*command, "--fraction", o.candidate.fraction, "part of the state that moves (windowed, cpu-adam)", "F");
  add_text(*command, "--slots", o.candidate.slots, "device slots, 2 or more (pipelined)", "D");
  add_text(*command, "--cap", o.candidate.cap, "device memory that live bytes stay below (tidal)", "BYTES");
  add_budgets(*command, o.budget, o.host_budget);
  add_megatron(*command, o.megatron);
  add_json(*command, o.json);
  command->footer(
      "Example: ebb sweep models/jobs/llama3-8b-hgx-h200.yaml --set batch.sequence=4096..16384:4096\n"
      "Exit 1: nothing fits at any of them");
  command->callback([&line] { line.chosen = line.sweep; });
}

void add_check(CommandLine& line) {
  CheckOptions& o = line.check;
  CLI::App* command = line.app.add_subcommand("check", "Every rule that this job breaks, with reason and cure");
  add_job(*command, o.job);
  add_chunking(*command, o.candidate);
  add_text(*command, "--fraction", o.candidate.fraction, "part of the state that moves (windowed, cpu-adam)", "F");
  add_megatron(*command, o.megatron);
  add_json(*command, o.json);
  command->footer("Example: ebb check models/jobs/llama3-8b-hgx-h200.yaml --policy chunked --chunk-numel 1e9");
  command->callback([&line] { line.chosen = line.check; });
}

void add_layout(CommandLine& line) {
  LayoutOptions& o = line.layout;
  CLI::App* command = line.app.add_subcommand("layout", "Shards, buckets and chunks of one rank's optimizer");
  add_job(*command, o.job);
  command->add_option("--rank", o.rank, "global rank")->required()->type_name("R");
  add_chunking(*command, o.candidate);
  add_json(*command, o.json);
  command->footer(
      "Example: ebb layout models/jobs/llama3-8b-hgx-h200.yaml --rank 7 --policy chunked --chunk-numel 1e8");
  command->callback([&line] { line.chosen = line.layout; });
}

}  // namespace

void add_job_commands(CommandLine& line) {
  add_plan(line);
  add_simulate(line);
  add_explain(line);
  add_fit(line);
  add_sweep(line);
  add_check(line);
  add_layout(line);
}

}  // namespace ebb::cli
