#include "reports/doctor_text.hpp"

#include <fmt/format.h>

#include "models/quantity_text.hpp"

namespace ebb::reports {

namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kIndent = 21;  // topic and verdict

/// Words of `text` in lines that end before kColumns, the first behind `head`, which is kIndent wide on a terminal, the
/// others indented like it.
std::string wrapped(const std::string& head, const std::string& text) {
  std::string lines = head;
  std::size_t column = kIndent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::size_t width = end - at;
    if (column > kIndent && column + 1 + width > kColumns) {
      lines += "\n" + std::string(kIndent, ' ');
      column = kIndent;
    }
    if (column > kIndent) {
      lines += ' ';
      ++column;
    }
    lines.append(text, at, width);
    column += width;
    at = end + 1;
  }
  return lines + "\n";
}

std::string paragraph(const HostFinding& finding, const Style& style) {
  std::string text = finding.figure;
  for (const std::string& part : {finding.consequence, finding.cure})
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  std::string verdict = fmt::format("{:<9}", finding.verdict);
  if (finding.verdict == "ok") verdict = style.green(verdict);
  if (finding.verdict == "problem") verdict = style.bold(verdict);
  return wrapped(fmt::format("{:<12}{}", finding.topic, verdict), text);
}

std::string title(const DoctorReport& report, const Style& style) {
  if (!report.plan) return style.bold("this host, for offloading in general") + " (ebb doctor JOB: for a job's plan)\n";
  const PlanNeed& plan = *report.plan;
  std::string text = style.bold(fmt::format("this host, for {}", plan.job)) + "\n";
  if (plan.policy.empty()) return text;
  text += wrapped(fmt::format("{:<21}", "plan"), plan.policy);
  return text + wrapped(fmt::format("{:<21}", "of each host"),
                        fmt::format("{} rank{}, {} pinned, {} besides; {} host{} in all", plan.ranks,
                                    plan.ranks == 1 ? "" : "s", format_bytes(plan.pinned), format_bytes(plan.pageable),
                                    plan.hosts, plan.hosts == 1 ? "" : "s"));
}

std::string last_line(const DoctorReport& report) {
  const std::int64_t problems = report.count("problem");
  const std::int64_t notes = report.count("note");
  const std::string counts =
      fmt::format("{} problem{}, {} note{}", problems, problems == 1 ? "" : "s", notes, notes == 1 ? "" : "s");
  if (!report.plan) return counts + "\n";
  if (report.plan->policy.empty()) return counts + "; no plan fits this job's budgets: ebb plan says by how much\n";
  return fmt::format(
      "{}: {}\n", counts,
      problems > 0 ? "this host cannot run the plan as it is predicted" : "nothing stands against the plan");
}

}  // namespace

std::string to_text(const DoctorReport& report, const Style& style) {
  std::string text = title(report, style);
  for (const HostFinding& finding : report.findings) text += paragraph(finding, style);
  return text + last_line(report);
}

}  // namespace ebb::reports
