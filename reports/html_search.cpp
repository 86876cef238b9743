// What fit and sweep found, as tables: answers to many searches at once.
#include <fmt/format.h>

#include <algorithm>

#include "models/quantity_text.hpp"
#include "reports/fit_text.hpp"
#include "reports/html_blob.hpp"
#include "reports/html_parts.hpp"

namespace ebb::reports {

namespace {

std::string row_class(bool fits) { return fits ? "picked" : "unfit"; }

void add_point(HtmlTable& table, const FitReport& fit, const FitLimit& limit, const std::optional<FitPoint>& point,
               bool fits) {
  if (!point) return;
  std::vector<std::string> cells = {fit_value(fit, point->value), limit.offload ? "any" : "resident state alone"};
  if (point->candidate) {
    const Candidate& c = *point->candidate;
    cells.insert(cells.end(), {label_of(c), format_bytes(c.device_reserved), format_bytes(c.host_pinned_per_host),
                               format_seconds(c.step)});
  } else {
    cells.insert(cells.end(), {"-", "-", "-", "-"});
  }
  cells.push_back(fits ? "fits" : point->obstacle);
  table.add_row(std::move(cells), row_class(fits));
}

/// An obstacle may be long, and a sweep has one in thousands of rows.
std::string shortened(const std::string& obstacle) {
  constexpr std::size_t kMost = 120;
  const std::string line = obstacle.substr(0, obstacle.find('\n'));
  return line.size() <= kMost ? line : line.substr(0, line.rfind(' ', kMost)) + " ...";
}

void add_row(HtmlTable& table, const SweepRow& row) {
  std::vector<std::string> cells = row.values;
  if (row.candidate) {
    const Candidate& c = *row.candidate;
    cells.insert(cells.end(),
                 {label_of(c), format_bytes(c.device_peak), format_bytes(c.device_reserved), format_seconds(c.step)});
  } else {
    cells.insert(cells.end(), {"-", "-", "-", "-"});
  }
  cells.push_back(row.fits ? "fits" : shortened(row.obstacle));
  table.add_row(std::move(cells), row_class(row.fits));
}

void append_sweep(std::string& page, const SweepReport& sweep, std::size_t shown) {
  const auto fitting = std::count_if(sweep.rows.begin(), sweep.rows.end(), [](const SweepRow& r) { return r.fits; });
  page += fmt::format("<section class=\"searched\">\n<h2>Sweep of {}</h2>\n<p>{} of {} combinations fit.</p>\n",
                      escaped(sweep.job), fitting, sweep.rows.size());
  std::vector<std::string> head = sweep.keys;
  head.insert(head.end(), {"schedule", "device peak", "needs at most", "step", ""});
  HtmlTable table("", std::move(head), sweep.keys.size() + 1, HtmlTable::Last::words);
  for (std::size_t i = 0; i < shown; ++i) add_row(table, sweep.rows[i]);
  table.append_to(page);
  if (shown < sweep.rows.size())
    page +=
        fmt::format("<p class=\"hint\">The first {} rows; the document has all {}.</p>\n", shown, sweep.rows.size());
  page += "</section>\n";
}

}  // namespace

void append_limits(std::string& page, const FitReport& fit) {
  page += fmt::format("<section class=\"searched\">\n<h2>{} that fits</h2>\n<p>{}.</p>\n",
                      fit.largest ? "The most" : "The least", escaped(fit_headline(fit)));
  HtmlTable table("", {fit.goal, "schedules", "schedule", "needs at most", "pinned a host", "step", ""}, 3,
                  HtmlTable::Last::words);
  for (const FitLimit& limit : fit.limits) {
    add_point(table, fit, limit, limit.fits, true);
    add_point(table, fit, limit, limit.breaks, false);
  }
  table.append_to(page);
  for (const std::string& note : fit.notes) page += fmt::format("<p class=\"hint\">{}</p>\n", escaped(note));
  page += "</section>\n";
}

void append_sweeps(std::string& page, const std::vector<SweepReport>& sweeps) {
  std::size_t left = kMostSweepRowsShown;
  for (const SweepReport& sweep : sweeps) {
    const std::size_t shown = std::min(left, sweep.rows.size());
    append_sweep(page, sweep, shown);
    left -= shown;
  }
}

}  // namespace ebb::reports
