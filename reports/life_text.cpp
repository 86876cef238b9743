// `ebb explain`, and the table of phases in `ebb simulate`.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/quantity_text.hpp"
#include "reports/answer_text.hpp"
#include "reports/answer_text_parts.hpp"

namespace ebb::reports {

namespace {

constexpr std::size_t kSparkWidth = 72;

std::string name_of(const Phase& phase) {
  std::string name = phase.name;
  if (!phase.variant.empty()) name += fmt::format(" ({}{})", phase.later ? "a later " : "", phase.variant);
  return name;
}

/// "-" where nothing happens.
std::string seconds_or_dash(Seconds seconds) { return seconds.value > 0 ? format_seconds(seconds) : "-"; }

/// A phase of which the storage's part is not known ends with "+".
std::string duration_of(const Phase& phase) {
  return seconds_or_dash(phase.duration) + (phase.stored.value > 0 && !phase.storage_known ? "+" : "");
}

/// The highest live bytes of each column, in eighths of the highest of all.
std::string sparkline(const Curve& curve) {
  constexpr std::array<const char*, 9> kBars = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                                "\u2585", "\u2586", "\u2587", "\u2588"};
  if (curve.points.empty()) return "";
  const double end = std::max(curve.points.back().at.value, 1e-12);
  std::array<std::int64_t, kSparkWidth> columns{};
  std::int64_t most = 1;
  std::size_t last = 0;
  std::int64_t alive = curve.points.front().bytes.value;
  for (const CurvePoint& point : curve.points) {
    const auto column = std::min(static_cast<std::size_t>(point.at.value / end * kSparkWidth), kSparkWidth - 1);
    for (; last < column; ++last) columns[last] = std::max(columns[last], alive);  // what stays alive
    alive = point.bytes.value;
    columns[column] = std::max(columns[column], alive);
    most = std::max(most, alive);
  }
  std::string line;
  for (const std::int64_t bytes : columns) line += kBars[static_cast<std::size_t>((bytes * 8 + most / 2) / most)];
  return line;
}

std::string largest_terms(const Phase& phase) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, phase.terms.size()); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", phase.terms[i].name, format_bytes(phase.terms[i].bytes));
  return text;
}

void append_phase(std::string& text, const Phase& phase, const Style& style) {
  text += fmt::format("\n{}: {} allocated at the peak on rank {}, {} reserved likely, at most {}\n",
                      style.bold(name_of(phase)), format_bytes(phase.device_peak), phase.rank,
                      format_bytes(phase.device_reserved_likely), format_bytes(phase.device_upper));
  Table terms({{"alive at the peak", Align::left}, {"bytes"}, {"", Align::left}, {"how it comes about", Align::left}});
  for (const PeakTerm& term : phase.terms)
    terms.add_row({term.name, format_numel({term.bytes.value}), format_bytes(term.bytes), term.origin});
  terms.add_row({"in all", format_numel({phase.device_peak.value}), format_bytes(phase.device_peak), ""});
  append_table(text, terms, style);
  Table more({{"may come on top", Align::left}, {"bytes"}, {"", Align::left}});
  for (const NamedBytes& term : phase.uncertainty)
    more.add_row({term.name, format_numel({term.bytes.value}), format_bytes(term.bytes)});
  more.add_row({"at most", format_numel({phase.device_upper.value}), format_bytes(phase.device_upper)});
  text += "\n";
  append_table(text, more, style);
}

void append_curve(std::string& text, const Curve& curve) {
  if (curve.points.empty()) return;
  const auto highest = std::max_element(curve.points.begin(), curve.points.end(),
                                        [](const CurvePoint& a, const CurvePoint& b) { return a.bytes < b.bytes; });
  text += fmt::format("\nlive bytes over a steady step of {}, rank {}, up to {} ({} of {} micro-batches shown)\n|{}|\n",
                      format_seconds(curve.points.back().at), curve.rank, format_bytes(highest->bytes),
                      curve.micro_batches, curve.of_micro_batches, sparkline(curve));
}

}  // namespace

void append_life(std::string& text, const std::vector<Phase>& phases, const Style& style) {
  Table table({{"phase", Align::left},
               {"time"},
               {"exposed"},
               {"device peak"},
               {"reserved ~"},
               {"needs <="},
               {"pinned/rank"},
               {"pageable/rank"}});
  bool any_open = false;
  bool any_later = false;
  for (const Phase& phase : phases) {
    table.add_row({name_of(phase), duration_of(phase), seconds_or_dash(phase.exposed), format_bytes(phase.device_peak),
                   format_bytes(phase.device_reserved_likely), format_bytes(phase.device_reserved),
                   format_bytes(phase.host_pinned), format_bytes(phase.host_pageable)});
    any_open = any_open || (phase.stored.value > 0 && !phase.storage_known);
    any_later = any_later || phase.later;
  }
  append_table(text, table, style);
  for (const Phase& phase : phases)
    if (any_open && phase.stored.value > 0 && !phase.storage_known)
      text += fmt::format("+ {}: {} a rank {} storage, whose speed the cluster does not state\n", name_of(phase),
                          format_bytes(phase.stored), phase.name == "save" ? "to" : "from");
  if (any_later) text += "\"later\": if this job is resumed one day; it does not decide what fits\n";
}

std::string to_text(const ExplainReport& report, const Style& style) {
  const Candidate& c = report.candidate;
  const std::string parameters = parameters_of(c);
  std::string text = fmt::format("{}\n{}{}{} ({})\n", job_line(report.header), c.policy, parameters == "-" ? "" : " ",
                                 parameters == "-" ? "" : parameters, report.chosen);
  if (report.phase) {
    for (const Phase& phase : report.phases) append_phase(text, phase, style);
    append_curve(text, report.curve);
    return text;
  }
  Table table({{"phase", Align::left}, {"device peak"}, {"reserved ~"}, {"at most"}, {"largest terms", Align::left}});
  for (const Phase& phase : report.phases)
    table.add_row({name_of(phase), format_bytes(phase.device_peak), format_bytes(phase.device_reserved_likely),
                   format_bytes(phase.device_upper), largest_terms(phase)});
  text += "\n";
  append_table(text, table, style);
  return text + "Next: add --phase and a name from the first column\n";
}

}  // namespace ebb::reports
