#include "reports/score_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/quantity_text.hpp"
#include "reports/table.hpp"
#include "reports/wrap.hpp"

namespace ebb::reports {

namespace {

std::string percent(double part) { return fmt::format("{:+.1f} %", 100 * part); }
std::string size(double part) { return fmt::format("{:.2f} %", 100 * part); }
double in_mib(Bytes bytes) { return static_cast<double>(bytes.value) / (1 << 20); }
std::string mib(Bytes bytes) { return fmt::format("{:+.1f} MiB", in_mib(bytes)); }

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// Names are as long as a line: each case has its figures below its name.
std::string case_lines(const ScoreReport& report) {
  Table table({{"allocated"},
               {"recorded"},
               {"off %"},
               {"left MiB"},
               {"peak"},
               {"recorded"},
               {"off %"},
               {"step"},
               {"recorded"},
               {"off %"}});
  const auto off = [](double part) { return fmt::format("{:+.1f}", 100 * part); };
  std::vector<std::string> names = {"case"};
  for (const ScoreCase& c : report.cases) {
    if (!c.modelled()) continue;
    const bool timed = c.recorded_iteration.has_value();
    names.push_back(c.id);
    table.add_row({format_bytes(c.predicted_allocated), format_bytes(c.recorded_allocated),
                   off(relative(c.predicted_allocated, c.recorded_allocated)),
                   fmt::format("{:+.1f}", in_mib(c.recorded_allocated - c.predicted_allocated)),
                   format_bytes(c.predicted_peak), format_bytes(c.recorded_peak),
                   off(relative(c.predicted_peak, c.recorded_peak)), format_seconds(c.predicted_iteration),
                   timed ? format_seconds(*c.recorded_iteration) : "-",
                   timed ? off(c.predicted_iteration.value / c.recorded_iteration->value - 1) : "-"});
  }
  std::string text;
  const std::vector<std::string> figures = table.lines();
  for (std::size_t i = 0; i < names.size(); ++i) text += fmt::format("{}\n  {}\n", names[i], figures[i]);
  return text;
}

std::string not_modelled(const ScoreReport& report) {
  std::string text;
  for (const ScoreCase& c : report.cases)
    if (!c.modelled()) text += wrapped(fmt::format("  {}: {}", c.id, c.reason), 4);
  return text.empty() ? text : "Not modelled:\n" + text + "\n";
}

std::string unheeded(const ScoreReport& report) {
  std::map<std::string, std::size_t> counts;
  for (const ScoreCase& c : report.cases)
    for (const std::string& argument : c.unheeded) ++counts[argument];
  std::string text;
  for (const auto& [argument, count] : counts)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", argument, count);
  if (text.empty()) return text;
  return wrapped("Arguments that change answers and are not modelled (cases): " + text, 2) + "\n";
}

Table error_table(const ScoreReport& report) {
  Table table({{"error", Align::left}, {"cases"}, {"median"}, {"p90"}, {"worst"}, {"bias"}});
  const auto add = [&](const char* name, const std::vector<double>& errors) {
    const ErrorSummary s = summarize(errors);
    table.add_row({name, fmt::format("{}", s.count), size(s.median), size(s.p90), size(s.worst), percent(s.bias)});
  };
  add("allocated between steps", allocated_errors(report));
  add("peak allocated", peak_errors(report));
  add("iteration", iteration_errors(report));
  return table;
}

Table remainder_table(const ScoreReport& report) {
  Table table({{"left unexplained, mean (recorded - predicted)", Align::left}, {"cases"}, {"allocated"}, {"peak"}});
  for (const Remainder& r : remainders(report))
    table.add_row({r.trait, fmt::format("{}", r.cases), mib(r.allocated), mib(r.peak)});
  return table;
}

/// Means over the modelled cases, of the terms that are there.
Table term_table(const ScoreReport& report) {
  Table table({{"terms between steps", Align::left}, {"cases"}, {"sum"}, {"of all"}});
  std::vector<NamedBytes> sums;
  std::vector<std::size_t> counts;
  Bytes total{0};
  for (const ScoreCase& c : report.cases) {
    for (const NamedBytes& term : c.terms) {
      auto known = std::find_if(sums.begin(), sums.end(), [&](const NamedBytes& s) { return s.name == term.name; });
      if (known == sums.end()) {
        known = sums.insert(sums.end(), NamedBytes{term.name});
        counts.push_back(0);
      }
      known->bytes += term.bytes;
      ++counts[static_cast<std::size_t>(known - sums.begin())];
      total += term.bytes;
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    table.add_row({sums[i].name, fmt::format("{}", counts[i]), format_bytes(sums[i].bytes),
                   size(static_cast<double>(sums[i].bytes.value) / static_cast<double>(total.value))});
  return table;
}

}  // namespace

std::string to_text(const ScoreReport& report, const Style& style) {
  const auto modelled = static_cast<std::size_t>(
      std::count_if(report.cases.begin(), report.cases.end(), [](const ScoreCase& c) { return c.modelled(); }));
  std::string text = style.bold(fmt::format("{}: {} of {} cases modelled", report.file, modelled, report.cases.size()));
  text += "\n\n";
  if (modelled > 0) text += case_lines(report) + "\n";
  text += not_modelled(report) + unheeded(report);
  if (modelled == 0) return text;
  text += joined(error_table(report).lines());
  text += fmt::format("allocated within 1 % or 8 MiB: {} of {}; within 3 % or 40 MiB: {}\n\n",
                      allocated_within(report, 0.01, 8_MiB), modelled, allocated_within(report, 0.03, 40_MiB));
  text += joined(term_table(report).lines()) + "\n";
  return text + joined(remainder_table(report).lines());
}

}  // namespace ebb::reports
