// The command that writes a page again, as arguments to paste. What goes to other files (-o, --timeline, --trace) and
// how stdout looks does not change the page and is left out.
#include "planner/cli.hpp"
#include "planner/html_report.hpp"

namespace ebb::cli {

namespace {

class CommandLine {
 public:
  CommandLine(const std::string& command, const std::string& job) : text_("ebb " + command + " " + quoted(job)) {}

  CommandLine& add(const char* name, const std::optional<std::string>& value) {
    if (value) text_.append(" ").append(name).append(" ").append(quoted(*value));
    return *this;
  }
  CommandLine& add(const char* name, const std::vector<std::string>& values) {
    for (const std::string& value : values) add(name, std::optional(value));
    return *this;
  }
  CommandLine& add(const char* name, bool given) {
    if (given) text_.append(" ").append(name);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string html_command(const PlanOptions& o) {
  return CommandLine("plan", o.job)
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
  return CommandLine("simulate", o.job)
      .add("--policy", o.candidate.policy)
      .add("--chunk-numel", o.candidate.chunk_numel)
      .add("--chunk-size-mb", o.candidate.chunk_size_mb)
      .add("--fraction", o.candidate.fraction)
      .add("--slots", o.candidate.slots)
      .add("--cap", o.candidate.cap)
      .add("--budget", o.budget)
      .add("--host-budget", o.host_budget)
      .add("--gpus", o.gpus)
      .add("--set", o.settings)
      .add("--measured", o.measured_file)
      .add("--html", o.html_file)
      .text();
}

std::string html_command(const ReportOptions& o) {
  std::string text = "ebb report";
  for (const std::string& file : o.files) text.append(" ").append(quoted(file));
  return text + " -o " + quoted(o.html_file);
}

}  // namespace ebb::cli
