#include "reports/check_text.hpp"

#include <fmt/format.h>

namespace ebb::reports {

namespace {

std::string paragraph(const BrokenRule& broken, const std::string& head, const Style& style) {
  std::string text = head + fmt::format("{}: {}\n", style.bold(broken.key), broken.problem);
  if (!broken.reason.empty()) text += fmt::format("    why: {}\n", broken.reason);
  if (!broken.cure.empty()) text += fmt::format("    cure: {}\n", broken.cure);
  return text + style.dim(fmt::format("    rule: {} ({})", broken.rule, broken.source)) + "\n";
}

std::string head_of(const BrokenRule& broken) { return broken.place.empty() ? "" : broken.place + ": "; }

/// What is open, and what is not and why.
std::string policies_text(const CheckReport& report, const Style& style) {
  std::string open;
  std::string closed;
  for (const PolicyVerdict& verdict : report.policies) {
    if (verdict.broken.empty()) open += (open.empty() ? "" : ", ") + verdict.policy;
    for (const BrokenRule& broken : verdict.broken)
      closed += paragraph(broken, fmt::format("{}, ruled out: ", verdict.policy), style);
  }
  if (closed.empty()) return "";
  return fmt::format("policies that nothing stands against: {}\n{}", open.empty() ? "none" : open, closed);
}

}  // namespace

std::string to_text(const CheckReport& report, const Style& style) {
  std::string text;
  for (const BrokenRule& broken : report.violations) text += paragraph(broken, head_of(broken), style);
  if (report.violations.empty()) {
    text = fmt::format("no rule of {} is broken\n", report.rules);
  } else {
    text += fmt::format("{} violation{} of {} rules\n", report.violations.size(),
                        report.violations.size() == 1 ? "" : "s", report.rules);
  }
  return text + policies_text(report, style);
}

}  // namespace ebb::reports
