// `ebb doctor [JOB]`: this machine, and what it means for a plan. Exit 1 when something stands against the job's plan.
#include <fmt/format.h>

#include <filesystem>

#include "models/errors.hpp"
#include "planner/cli.hpp"
#include "planner/cli_output.hpp"
#include "planner/doctor_need.hpp"
#include "reports/doctor_json.hpp"
#include "reports/doctor_text.hpp"

namespace ebb::cli {

namespace {

reports::PlanNeed report_of(const Job& job, const std::optional<HostNeed>& need) {
  reports::PlanNeed plan;
  plan.job = job.name;
  if (!need) return plan;
  plan.policy = need->policy;
  plan.hosts = need->hosts;
  plan.ranks = need->ranks;
  plan.pinned = need->pinned;
  plan.pageable = need->pageable;
  plan.checkpoint = need->checkpoint;
  return plan;
}

}  // namespace

int run_doctor(const DoctorOptions& options) {
  if (options.root && !std::filesystem::is_directory(*options.root + "/proc"))
    throw InputError({"--root"}, fmt::format("{} has no proc/", *options.root), "name the root of a system");
  reports::DoctorReport report;
  report.ebb_version = EBB_VERSION;
  std::optional<HostNeed> need;
  if (options.job) {
    const Job job = load_job_argument(*options.job, options.settings);
    check(job);
    need = host_need(job);
    report.plan = report_of(job, need);
  } else if (!options.settings.empty()) {
    throw InputError({"--set"}, "there is no job to change", "give a JOB, or leave it out");
  }
  const HostFacts facts = read_host_facts(options.root.value_or(""), options.checkpoint.value_or(""));
  for (const HostFinding& finding : diagnose(facts, need))
    report.findings.push_back(
        {finding.topic, std::string(name_of(finding.verdict)), finding.figure, finding.consequence, finding.cure});
  write_stdout(options.json ? reports::to_json(report) : reports::to_text(report, reports::style_of(1)));
  return report.stands_against() ? 1 : 0;
}

}  // namespace ebb::cli
