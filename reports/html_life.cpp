// Memory over the life of a job: a drawing without scripts (SVG), and the table behind it.
//
// The drawing: one column a phase, as high as the bound that decides; in it what the allocator is likely to reserve
// and what is alive, and across all of them the budget. Host memory likewise, pinned below pageable. Widths are not
// durations: a save may take longer than a thousand steps that matter more.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/quantity_text.hpp"
#include "reports/html_blob.hpp"
#include "reports/html_parts.hpp"

namespace ebb::reports {

namespace {

std::string name_of(const Phase& phase) {
  if (phase.variant.empty()) return phase.name;
  return fmt::format("{} ({}{})", phase.name, phase.later ? "a later " : "", phase.variant);
}

/// A part of a column, from the bottom.
struct Bar {
  const char* css;
  const char* name;
  Bytes bytes;
};

struct Chart {
  const char* title;
  Bytes budget;
  const char* budget_name;
  double top = 1;  // bytes at the upper edge
};

constexpr double kWidth = 900, kLeft = 64, kRight = 8, kTop = 22, kBottom = 196, kHeight = 232;

double y_of(double bytes, double top) { return kBottom - (kBottom - kTop) * bytes / top; }

/// A power of two: at most six lines.
double grid_step(double top) {
  double step = 1048576;
  for (int i = 0; top / step > 6; ++i) step *= 2;
  return step;
}

/// A multiple of a power of two: "0", "8 GiB".
std::string tick_label(std::int64_t bytes) {
  if (bytes == 0) return "0";
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes % 1024 == 0 && unit + 1 < kUnits.size(); bytes /= 1024) ++unit;
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

void append_grid(std::string& svg, const Chart& chart) {
  for (double at = 0; at <= chart.top; at += grid_step(chart.top)) {
    const double y = y_of(at, chart.top);
    svg +=
        fmt::format("<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text class=\"tick\" x=\"{}\" y=\"{:.1f}\">{}</text>\n",
                    kLeft, y, kWidth - kRight, kLeft - 8, y + 4, tick_label(static_cast<std::int64_t>(at)));
  }
}

void append_column(std::string& svg, const Phase& phase, const std::vector<Bar>& bars, double x, double width,
                   double top) {
  std::string hint = name_of(phase);
  for (const Bar& bar : bars) hint += fmt::format("\n{}: {}", bar.name, format_bytes(bar.bytes));
  svg += fmt::format("<g class=\"column{}\"><title>{}</title>\n", phase.later ? " later" : "", escaped(hint));
  for (const Bar& bar : bars) {
    const double y = y_of(static_cast<double>(bar.bytes.value), top);
    svg += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", bar.css,
                       x, y, width, kBottom - y);
  }
  svg += fmt::format(
      "<text class=\"name\" x=\"{0:.1f}\" y=\"{1}\">{2}<tspan x=\"{0:.1f}\" dy=\"13\">{3}{4}</tspan></text></g>\n",
      x + width / 2, kBottom + 16, escaped(phase.name), phase.later ? "later " : "", escaped(phase.variant));
}

/// Its line, and its name above the line's right end.
void append_budget(std::string& svg, const Chart& chart) {
  const double y = y_of(static_cast<double>(chart.budget.value), chart.top);
  if (chart.budget.value <= 0 || y < kTop - 10) return;
  svg += fmt::format(
      "<path class=\"budget\" d=\"M{} {:.1f}H{}\"/><text class=\"budget\" x=\"{}\" y=\"{:.1f}\">{} {}</text>\n", kLeft,
      y, kWidth - kRight, kWidth - kRight, y - 5, chart.budget_name, format_bytes(chart.budget));
}

template <class BarsOf>
void append_chart(std::string& page, const std::vector<Phase>& phases, Chart chart, BarsOf bars_of) {
  double highest = 0;
  for (const Phase& phase : phases)
    for (const Bar& bar : bars_of(phase)) highest = std::max(highest, static_cast<double>(bar.bytes.value));
  if (highest <= 0) return;
  // The budget belongs in the picture unless it would flatten everything else.
  const auto budget = static_cast<double>(chart.budget.value);
  chart.top = 1.06 * (budget < 5 * highest ? std::max(highest, budget) : highest);
  page += fmt::format(
      "<figure class=\"life\"><figcaption>{}</figcaption>\n"
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}; the table below has the figures\">\n",
      escaped(chart.title), kWidth, kHeight, escaped(chart.title));
  append_grid(page, chart);
  const double pitch = (kWidth - kLeft - kRight) / static_cast<double>(phases.size());
  for (std::size_t i = 0; i < phases.size(); ++i)
    append_column(page, phases[i], bars_of(phases[i]), kLeft + pitch * (static_cast<double>(i) + 0.16), pitch * 0.68,
                  chart.top);
  append_budget(page, chart);
  page += "</svg>\n";
  if (budget >= 5 * highest)
    page += fmt::format("<p class=\"hint\">The {} of {} is far above.</p>\n", chart.budget_name,
                        format_bytes(chart.budget));
  page += "</figure>\n";
}

std::vector<Bar> device_bars(const Phase& phase) {
  return {{"bound", "needs at most", phase.device_reserved},
          {"reserved", "reserved, likely", phase.device_reserved_likely},
          {"live", "alive at the peak", phase.device_peak}};
}

std::vector<Bar> host_bars(const Phase& phase) {
  return {{"pageable", "with pageable memory", phase.host_pinned_per_host + phase.host_pageable_per_host},
          {"pinned", "pinned", phase.host_pinned_per_host}};
}

std::string seconds_or_dash(Seconds seconds) { return seconds.value > 0 ? format_seconds(seconds) : "-"; }

void append_table(std::string& page, const std::vector<Phase>& phases) {
  HtmlTable table("", {"phase", "time", "exposed", "device peak", "reserved, likely", "needs at most", "pinned a host",
                       "pageable a host"});
  for (const Phase& phase : phases)
    table.add_row(
        {name_of(phase), seconds_or_dash(phase.duration) + (phase.stored.value > 0 && !phase.storage_known ? " +" : ""),
         seconds_or_dash(phase.exposed), format_bytes(phase.device_peak), format_bytes(phase.device_reserved_likely),
         format_bytes(phase.device_reserved), format_bytes(phase.host_pinned_per_host),
         format_bytes(phase.host_pageable_per_host)},
        phase.later ? "later" : "");
  table.append_to(page);
  for (const Phase& phase : phases)
    if (phase.stored.value > 0 && !phase.storage_known)
      page += fmt::format("<p class=\"hint\">+ {}: {} a rank {} storage, whose speed the cluster does not state</p>\n",
                          escaped(name_of(phase)), format_bytes(phase.stored), phase.name == "save" ? "to" : "from");
}

}  // namespace

void append_life_of(std::string& page, const HtmlCandidate& candidate, const Header& header) {
  const std::vector<Phase>& phases = candidate.life;
  if (phases.empty()) return;
  page +=
      "<p class=\"key\"><span class=\"sw live\"></span>alive at the peak <span class=\"sw reserved\"></span>reserved "
      "by "
      "torch's allocator, likely <span class=\"sw bound\"></span>needs at most (decides)</p>\n";
  append_chart(page, phases,
               {.title = "Device memory, one GPU", .budget = header.device_budget, .budget_name = "budget"},
               device_bars);
  page += "<p class=\"key\"><span class=\"sw pinned\"></span>pinned <span class=\"sw pageable\"></span>pageable</p>\n";
  append_chart(
      page, phases,
      {.title = "Memory of one host, all its ranks", .budget = header.host_budget, .budget_name = "host budget"},
      host_bars);
  append_table(page, phases);
}

}  // namespace ebb::reports
