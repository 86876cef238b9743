// The phases of a life as tables: for `ebb simulate` and `ebb explain`.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/quantity_text.hpp"
#include "reports/answer_text_parts.hpp"
#include "reports/wrap.hpp"

namespace ebb::reports {

namespace {

constexpr std::size_t kSparkWidth = 72;

std::string name_of(const Phase& phase) {
  std::string name = phase.name;
  if (!phase.variant.empty()) name += fmt::format(" ({})", phase.later ? "later" : phase.variant);
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

std::string largest_term(const Phase& phase) {
  return phase.terms.empty() ? "" : fmt::format("{} {}", phase.terms[0].name, format_bytes(phase.terms[0].bytes));
}

/// A long last cell goes on in rows below.
void add_wrapped_row(Table& table, std::vector<std::string> cells, const std::string& last) {
  constexpr std::size_t kLastColumn = 50;
  std::string rest = wrapped(last, 0, "", kLastColumn);
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    std::vector<std::string> row = cells;
    row.push_back(rest.substr(0, end));
    table.add_row(std::move(row));
    rest.erase(0, end + 1);
    for (std::string& cell : cells) cell.clear();
  }
}

}  // namespace

void append_phase(std::string& text, const Phase& phase, const Style& style) {
  const std::string name = name_of(phase);
  const std::string line =
      wrapped(fmt::format("{}: {} allocated at the peak on rank {}, {} reserved likely, at most {}", name,
                          format_bytes(phase.device_peak), phase.rank, format_bytes(phase.device_reserved_likely),
                          format_bytes(phase.device_upper)),
              2);
  text += fmt::format("\n{}{}", style.bold(name), line.substr(name.size()));
  Table terms({{"alive at the peak", Align::left}, {"bytes"}, {"", Align::left}, {"how it comes about", Align::left}});
  for (const PeakTerm& term : phase.terms)
    add_wrapped_row(terms, {term.name, format_numel({term.bytes.value}), format_bytes(term.bytes)}, term.origin);
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

void append_life(std::string& text, const std::vector<Phase>& phases, const Style& style) {
  Table table({{"phase", Align::left},
               {"time"},
               {"exposed"},
               {"allocated"},
               {"reserved ~"},
               {"needs <="},
               {"pinned"},
               {"pageable"}});
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
  text += "pinned and pageable: host memory of one rank\n";
  for (const Phase& phase : phases)
    if (any_open && phase.stored.value > 0 && !phase.storage_known)
      text += wrapped(fmt::format("+ {}: {} a rank {} storage, whose speed the cluster does not state", name_of(phase),
                                  format_bytes(phase.stored), phase.name == "save" ? "to" : "from"),
                      2);
  if (any_later) text += "\"later\": if this job is resumed one day; it does not decide what fits\n";
}

void append_phases(std::string& text, const std::vector<Phase>& phases, const Style& style) {
  Table table({{"phase", Align::left}, {"allocated"}, {"reserved ~"}, {"at most"}, {"largest term", Align::left}});
  for (const Phase& phase : phases)
    table.add_row({name_of(phase), format_bytes(phase.device_peak), format_bytes(phase.device_reserved_likely),
                   format_bytes(phase.device_upper), largest_term(phase)});
  append_table(text, table, style);
}

}  // namespace ebb::reports
