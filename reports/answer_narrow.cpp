// `ebb plan` on a terminal: the answer in 24 lines of 100 columns. What does not fit stands behind --all
// (answer_text.cpp), in the JSON and in `ebb explain`.
#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "reports/answer_text.hpp"
#include "reports/answer_text_parts.hpp"
#include "reports/table.hpp"
#include "reports/wrap.hpp"

namespace ebb::reports {

namespace {

/// Over resident; no sign where it rounds to nothing.
std::string slower_text(double slowdown) {
  const std::string text = fmt::format("{:.1f} %", (slowdown - 1) * 100);
  return text == "-0.0 %" ? "0.0 %" : text;
}

constexpr std::size_t kLines = 24;
constexpr const char* kLegend =
    "needs <=: reserved bytes at most, of start, steps, load and save; it decides. pinned: on a host.";
constexpr const char* kExcludedShort =
    "Not in these figures: CUDA context, NCCL buffers, data loading, evaluation, checkpoint I/O.";

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::string runs_on(const Candidate& c) {
  if (c.requirement == "ebb") return "Ebb's runtime";
  if (c.requirement.empty()) return "any Megatron";
  return fmt::format("Megatron {}", c.requirement == "pr6544" ? "#6544" : c.requirement);
}

/// What stands against a candidate in a few words, or where it runs. `number`: of the note that says it in full.
template <class Number>
std::string short_note(const Candidate& c, const Header& header, const Number& number) {
  if (c.device_reserved > header.device_budget)
    return fmt::format("over by {}{}", format_bytes(c.device_reserved - header.device_budget),
                       c.deciding_phase == "load"   ? ", loading"
                       : c.deciding_phase == "save" ? ", saving"
                                                    : "");
  if (c.host_pinned_per_host > header.host_budget) return "pins too much";
  if (!c.feasible) return number(c.reason);
  if (c.deployable || c.requirement == "ebb") return runs_on(c);
  if (c.reason == fmt::format("needs Megatron {}", c.requirement)) return fmt::format("needs {}", c.requirement);
  return number(c.reason);
}

struct Rows {
  std::vector<std::size_t> shown;  // into PlanReport::candidates
  std::size_t left_out = 0;
};

class Narrow {
 public:
  explicit Narrow(const PlanReport& report) : report_(report) {
    for (std::size_t i = 0; i < report.candidates.size(); ++i) rows_.shown.push_back(i);
  }

  /// Leaves out rows until the text has at most kLines lines, or only rows are left that must stay.
  std::string text(const Style& style) {
    std::string text = write(style);
    while (lines_in(text) > kLines && drop_row()) text = write(style);
    return text;
  }

 private:
  std::string write(const Style& style) const;
  std::string table(const Style& style) const;
  bool drop_row();

  const PlanReport& report_;
  Rows rows_;
};

/// Last first: a row besides another of its policy, then an only one; in each pass those first that are out of the
/// question. Never the answer, resident, Ebb's own, or the only row of a policy that could be taken.
bool Narrow::drop_row() {
  const auto out = [&](std::size_t i) { return !report_.candidates[i].feasible || !report_.candidates[i].deployable; };
  const auto not_alone = [&](std::size_t i) {
    const auto of_policy = [&](std::size_t other) {
      return report_.candidates[other].policy == report_.candidates[i].policy;
    };
    return std::count_if(rows_.shown.begin(), rows_.shown.end(), of_policy) > 1;
  };
  const auto must_stay = [&](std::size_t i) {
    const Candidate& c = report_.candidates[i];
    return report_.recommended == i || c.policy == "resident" || c.requirement == "ebb";
  };
  for (const int pass : {0, 1, 2})
    for (std::size_t at = rows_.shown.size(); at-- > 0;) {
      const std::size_t i = rows_.shown[at];
      const bool may_go = pass == 0 ? out(i) && not_alone(i) : pass == 1 ? not_alone(i) : out(i);
      if (must_stay(i) || !may_go) continue;
      rows_.shown.erase(rows_.shown.begin() + static_cast<std::ptrdiff_t>(at));
      ++rows_.left_out;
      return true;
    }
  return false;
}

std::string Narrow::table(const Style& style) const {
  Table table({{"", Align::left},
               {"policy", Align::left},
               {"chunk"},
               {"allocated"},
               {"needs <="},
               {"pinned"},
               {"step"},
               {"slower"},
               {"", Align::left}});
  std::vector<std::string> notes;
  const auto number = [&](const std::string& reason) {
    const auto known = std::find(notes.begin(), notes.end(), reason);
    const auto position = known - notes.begin() + 1;
    if (known == notes.end()) notes.push_back(reason);
    return fmt::format("no ({})", position);
  };
  for (const std::size_t i : rows_.shown) {
    const Candidate& c = report_.candidates[i];
    table.add_row({report_.recommended == i ? "*" : " ", c.policy, parameters_of(c), format_bytes(c.device_peak),
                   format_bytes(c.device_reserved), format_bytes(c.host_pinned_per_host), format_seconds(c.step),
                   c.policy == "resident" ? "-" : slower_text(c.slowdown), short_note(c, report_.header, number)});
  }
  std::string text;
  append_table(text, table, style);
  for (std::size_t i = 0; i < notes.size(); ++i) text += wrapped(fmt::format("({}) {}", i + 1, notes[i]), 4);
  return text;
}

std::string Narrow::write(const Style& style) const {
  std::string text = answer_lines(report_, style) + "\n" + wrapped(job_line(report_.header), 2) + table(style);
  text += style.dim(kLegend) + "\n" + style.dim(kExcludedShort) + "\n";
  if (!report_.next_command.empty()) text += wrapped(fmt::format("Next: {}", report_.next_command), 2, "\\");
  const std::string job = report_.megatron.empty() ? "JOB" : "JOB --megatron " + report_.megatron;
  std::string also = fmt::format("Also: ebb explain {0} (why), ebb plan {0} --all (", job);
  also +=
      rows_.left_out > 0 ? fmt::format("{} more row{}", rows_.left_out, rows_.left_out == 1 ? "" : "s") : "all figures";
  also += report_.recommended ? "), --format yaml|bridge|verl" : ")";
  return text + wrapped(also, 2);
}

}  // namespace

std::string to_text(const PlanReport& report, const Style& style) { return Narrow(report).text(style); }

}  // namespace ebb::reports
