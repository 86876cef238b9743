#include "reports/fit_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "reports/answer_text_parts.hpp"
#include "reports/table.hpp"
#include "reports/wrap.hpp"

namespace ebb::reports {

namespace {

/// The goal in a sentence, and its unit.
struct Words {
  const char* goal;
  const char* most;  // "longest sequence"
  const char* column;
};

constexpr Words kWords[] = {{"sequence", "longest sequence", "sequence"},
                            {"micro-batch", "largest micro-batch", "micro-batch"},
                            {"layers", "most layers", "layers"},
                            {"gpus", "fewest GPUs", "GPUs"},
                            {"host-memory", "least memory of a host", "host memory"}};

const Words& words_of(const FitReport& report) {
  return *std::find_if(std::begin(kWords), std::end(kWords),
                       [&](const Words& words) { return report.goal == words.goal; });
}

}  // namespace

std::string fit_value(const FitReport& report, std::int64_t value) {
  return report.goal == "host-memory" ? format_bytes(Bytes{value}) : format_numel(Numel{value});
}

namespace {

const FitLimit* limit_of(const FitReport& report, bool offload) {
  for (const FitLimit& limit : report.limits)
    if (limit.offload == offload) return &limit;
  return nullptr;
}

std::string limit_text(const FitReport& report, const FitLimit& limit) {
  return limit.fits ? fit_value(report, limit.fits->value) : "none";
}

}  // namespace

std::string fit_headline(const FitReport& report) {
  const FitLimit* with = limit_of(report, true);
  const FitLimit* without = limit_of(report, false);
  std::string text = fmt::format("{}: ", words_of(report).most);
  if (with != nullptr) text += limit_text(report, *with) + (without != nullptr ? " with offload" : "");
  if (without != nullptr)
    text += fmt::format("{}{} without", with != nullptr ? ", " : "", limit_text(report, *without));
  if (report.goal != "host-memory") text += fmt::format("; the job has {}", fit_value(report, report.own));
  if (report.step > 0) text += fmt::format("; in steps of {}", fit_value(report, report.step));
  return text;
}

namespace {

void add_point(Table& table, const FitReport& report, const FitLimit& limit, const std::optional<FitPoint>& point,
               bool fits) {
  if (!point) return;
  std::vector<std::string> cells = {fits ? "*" : " ", limit.offload ? "any" : "resident",
                                    fit_value(report, point->value)};
  if (point->candidate) {
    const Candidate& c = *point->candidate;
    cells.insert(cells.end(),
                 {c.policy, parameters_of(c), format_bytes(c.device_reserved), format_bytes(c.host_pinned_per_host),
                  format_seconds(c.step), fits ? "fits" : short_reason(c.reason)});
  } else {
    cells.insert(cells.end(), {"-", "-", "-", "-", "-", "breaks a rule"});
  }
  table.add_row(std::move(cells));
}

/// Each of its lines.
std::string lines_wrapped(const std::string& text) {
  std::string all;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    all += wrapped(text.substr(begin, end - begin), 2);
    begin = end + 1;
  }
  return all;
}

}  // namespace

std::string to_text(const FitReport& report, const Style& style) {
  std::string text = fmt::format("{}\n", style.bold(fit_headline(report)));
  const FitPoint* best = report.limits.front().fits ? &*report.limits.front().fits : nullptr;
  if (best != nullptr && best->candidate) {
    const Candidate& pick = *best->candidate;
    text += (pick.flags.empty() ? fmt::format("{}\n", style.green("no flag")) : flags_line(pick, style)) +
            wrapped(fmt::format("takes it: {}", pick.takers), 2);
  }
  text += fmt::format("\n{}\n", wrapped(job_line(report.header), 2));
  Table table({{"", Align::left},
               {"schedules", Align::left},
               {words_of(report).column},
               {"policy", Align::left},
               {"chunk"},
               {"needs <="},
               {"pinned/host"},
               {"step"},
               {"", Align::left}});
  for (const FitLimit& limit : report.limits) {
    add_point(table, report, limit, limit.fits, true);
    add_point(table, report, limit, limit.breaks, false);
  }
  append_table(text, table, style);
  for (const FitLimit& limit : report.limits)
    if (limit.breaks && !limit.breaks->candidate) text += fmt::format("\n{}", lines_wrapped(limit.breaks->obstacle));
  for (const std::string& note : report.notes) text += fmt::format("\n{}", wrapped(note, 2));
  if (!report.next_command.empty())
    text += fmt::format("\n{}", wrapped(fmt::format("Next: {}", report.next_command), 2, "\\"));
  return text;
}

}  // namespace ebb::reports
