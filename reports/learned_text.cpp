#include "reports/learned_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"

namespace ebb::reports {

namespace {

std::string left_out_text(const LeftOut& out) {
  const std::pair<std::int64_t, const char*> kinds[] = {{out.first, "of a process' first iterations"},
                                                        {out.skipped, "with skipped or nan iterations"},
                                                        {out.other_batch, "of another global batch"},
                                                        {out.after_pause, "right after a save or a validation"},
                                                        {out.outliers, "far from the others"}};
  std::string text;
  for (const auto& [count, what] : kinds)
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  return text.empty() ? "" : "; left out: " + text;
}

std::string rank_text(const LearnedRank& rank) {
  return fmt::format("rank {} held {} between steps (predicted {}), {} at its peak (predicted {})", rank.rank,
                     format_bytes(rank.allocated), format_bytes(rank.predicted_allocated), format_bytes(rank.peak),
                     format_bytes(rank.predicted_peak));
}

std::vector<std::string> lines_of(const LearnReport& report) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("an iteration takes {} +- {} (median of {} of {} lines{})",
                              format_seconds(report.iteration), format_seconds(report.deviation), report.used,
                              report.lines, left_out_text(report.left_out)));
  lines.push_back(fmt::format("compute.step_seconds {}: what remains beside optimizer and communication under {}",
                              format_seconds(report.step_seconds), report.policy));
  if (report.policy_from != "none")
    lines.push_back(fmt::format("offload: {{{}}}, as the {} says", report.offload, report.policy_from));
  if (report.optimizer_logged)
    lines.push_back(fmt::format("its optimizer takes {} by the log's timers, {} as predicted",
                                format_seconds(*report.optimizer_logged), format_seconds(report.optimizer_predicted)));
  constexpr std::size_t kMostRanks = 4;
  for (std::size_t i = 0; i < std::min(report.ranks.size(), kMostRanks); ++i)
    lines.push_back(rank_text(report.ranks[i]));
  if (report.ranks.size() > kMostRanks)
    lines.push_back(fmt::format("... and {} more ranks (--json has them)", report.ranks.size() - kMostRanks));
  if (report.memory_left_out > 0)
    lines.push_back(
        fmt::format("memory lines left out, as a figure is missing, nan or above 1 PiB: {}", report.memory_left_out));
  if (!report.ranks.empty())
    lines.push_back(fmt::format("measured remainder: {} between steps, {} more in forward and backward",
                                format_bytes(report.resident_remainder), format_bytes(report.peak_remainder)));
  if (report.theoretical_state)
    lines.push_back(fmt::format("Megatron's own formula: {} for weights, gradients and optimizer",
                                format_bytes(*report.theoretical_state)));
  for (const std::string& what : report.assumed) lines.push_back("assumed: " + what);
  for (const std::string& what : report.warnings) lines.push_back("warning: " + what);
  return lines;
}

}  // namespace

std::string to_text(const LearnReport& report) {
  std::string text;
  for (const std::string& line : lines_of(report)) text += line + "\n";
  return text;
}

std::string comments_of(const LearnReport& report) {
  std::string text = fmt::format("Learned by ebb from {}:", report.log);
  for (const std::string& line : lines_of(report)) text += "\n  " + line;
  // A name from a user's file system may hold anything, and a comment ends with its line.
  std::string comments = "# ";
  for (const char c : text) {
    if (c == '\n')
      comments += "\n# ";
    else
      comments += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  }
  return comments + "\n";
}

}  // namespace ebb::reports
