// The command that writes a page again, as arguments to paste. What goes to other files (-o, --timeline, --trace) and
// how stdout looks does not change the page and is left out.
#include "planner/cli.hpp"
#include "planner/html_report.hpp"
#include "planner/paste_command.hpp"

namespace ebb::cli {

std::string html_command(const PlanOptions& o) {
  return PasteCommand("plan", {o.job})
      .add("--budget", o.budget)
      .add("--host-budget", o.host_budget)
      .add("--megatron", o.megatron)
      .add("--objective", o.objective)
      .add("--robust", o.robust)
      .add("--set", o.settings)
      .add("--measured", o.measured_file)
      .add("--html", o.html_file)
      .text();
}

std::string html_command(const SimulateOptions& o) {
  return PasteCommand("simulate", {o.job})
      .add("--policy", o.candidate.policy)
      .add("--chunk-numel", o.candidate.chunk_numel)
      .add("--chunk-size-mb", o.candidate.chunk_size_mb)
      .add("--fraction", o.candidate.fraction)
      .add("--slots", o.candidate.slots)
      .add("--cap", o.candidate.cap)
      .add("--budget", o.budget)
      .add("--host-budget", o.host_budget)
      .add("--robust", o.robust)
      .add("--gpus", o.gpus)
      .add("--set", o.settings)
      .add("--measured", o.measured_file)
      .add("--html", o.html_file)
      .text();
}

std::string html_command(const ReportOptions& o) {
  return PasteCommand("report", o.files).add("-o", o.html_file).text();
}

}  // namespace ebb::cli
