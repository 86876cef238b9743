// `ebb check JOB`: every rule that the job breaks, and when it leaves the policy open, what rules each policy out.
#include <algorithm>

#include "models/job_yaml.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/rules.hpp"
#include "reports/check_json.hpp"
#include "reports/check_text.hpp"

namespace ebb::cli {

namespace {

std::vector<reports::BrokenRule> reported(const std::vector<Violation>& list) {
  std::vector<reports::BrokenRule> broken;
  for (const Violation& violation : list) {
    const Rule& rule = *violation.rule;
    broken.push_back({.line = text_of(violation),
                      .rule = std::string(rule.id),
                      .place = violation.place.text(),
                      .key = violation.key,
                      .problem = violation.problem,
                      .reason = std::string(rule.reason),
                      .cure = violation.cure,
                      .source = std::string(rule.source)});
  }
  return broken;
}

std::int64_t rules_asked(std::optional<Policy> policy) {
  const std::span<const Rule> rules = all_rules();
  return std::count_if(rules.begin(), rules.end(), [&](const Rule& rule) { return concerns(rule, policy); });
}

}  // namespace

int run_check(const CheckOptions& options) {
  Megatron megatron = Megatron::any;
  if (options.megatron) megatron = parse_megatron(*options.megatron, Place{"--megatron"});
  Job job = load_job_argument(options.job);
  set_offload(job, options.candidate);

  reports::CheckReport report;
  report.job = job.name;
  report.model = job.model.name;
  report.cluster = job.cluster.name;
  report.gpus = job.parallel.gpus;
  report.ebb_version = EBB_VERSION;
  report.megatron = name_of(megatron);
  const std::optional<Policy> policy = job.offload.policy;
  if (policy) report.policy = name_of(*policy);
  report.rules = rules_asked(policy);
  report.violations = reported(violations(job, policy, megatron));
  if (!policy)
    for (const Policy each : kPolicies)
      report.policies.push_back({std::string(name_of(each)), reported(objections(job, each, megatron))});
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return report.violations.empty() ? 0 : 2;
}

}  // namespace ebb::cli
