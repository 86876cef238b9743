#include "reports/check_text.hpp"

#include <fmt/format.h>

namespace ebb::reports {

namespace {

std::string paragraph(const BrokenRule& broken, const Style& style) {
  return broken.line + "\n" + style.dim(fmt::format("    rule {}: {}", broken.rule, broken.source)) + "\n";
}

/// What is open, and what is not and why.
std::string policies_text(const CheckReport& report, const Style& style) {
  std::string open;
  std::string closed;
  for (const PolicyVerdict& verdict : report.policies) {
    if (verdict.broken.empty()) open += (open.empty() ? "" : ", ") + verdict.policy;
    for (const BrokenRule& broken : verdict.broken)
      closed += fmt::format("{} is ruled out: {}", style.bold(verdict.policy), paragraph(broken, style));
  }
  if (closed.empty()) return "";
  return fmt::format("policies that nothing stands against: {}\n{}", open.empty() ? "none" : open, closed);
}

}  // namespace

std::string to_text(const CheckReport& report, const Style& style) {
  std::string text;
  for (const BrokenRule& broken : report.violations) text += paragraph(broken, style);
  if (report.violations.empty()) {
    text = fmt::format("no rule of {} is broken\n", report.rules);
  } else {
    text += fmt::format("{} violation{} of {} rules\n", report.violations.size(),
                        report.violations.size() == 1 ? "" : "s", report.rules);
  }
  return text + policies_text(report, style);
}

}  // namespace ebb::reports
