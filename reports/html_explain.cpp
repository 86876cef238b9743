// `ebb explain` in a page: what decides the step, what no schedule can be below, why not its neighbours, what would
// change the answer; and what is alive at the peak of each phase.
#include <fmt/format.h>

#include "models/quantity_text.hpp"
#include "reports/html_blob.hpp"
#include "reports/html_parts.hpp"

namespace ebb::reports {

namespace {

void append_paragraph(std::string& page, const std::string& text) {
  page.append("<p>").append(escaped(text)).append("</p>\n");
}

void append_path(std::string& page, const Explanation& e) {
  HtmlTable table("Where the step goes", {"phase", "what", "stream", "waits mostly for", "operations", "time", "share"},
                  4);
  for (const PathSegment& s : e.segments)
    table.add_row({s.phase, s.what, s.stream, s.waited_for == "nothing" ? "-" : s.waited_for,
                   s.operations > 0 ? format_numel({s.operations}) : "-", format_seconds(s.time),
                   fmt::format("{:.1f} %", s.percent)});
  table.add_row({"in all", fmt::format("the slowest rank, {}", e.rank), "", "", format_numel({e.path_operations}),
                 format_seconds(e.step), ""},
                "sum");
  table.append_to(page);
  append_paragraph(page, e.bottleneck.sentence);
}

void append_bounds(std::string& page, const Explanation& e) {
  HtmlTable table("What no schedule that moves as much can be below, in the step phase", {"bound", "time", ""}, 1,
                  HtmlTable::Last::words);
  for (const LowerBound& bound : e.bounds) table.add_row({bound.name, format_seconds(bound.time), bound.origin});
  table.add_row({"achieved", format_seconds(e.optimizer),
                 fmt::format("the whole step takes {} more than resident's", format_seconds(e.added))},
                "sum");
  table.append_to(page);
  append_paragraph(page, fmt::format("With no optimizer state on the device at all, {} would be allocated at the peak "
                                     "of rank {}; this schedule has {}.",
                                     format_bytes(e.memory.least), e.memory.rank, format_bytes(e.memory.peak)));
}

void append_neighbours(std::string& page, const Explanation& e) {
  if (e.neighbours.empty()) return;
  HtmlTable table("Why not its neighbours", {"", "schedule", "verdict"}, 3);
  for (const Neighbour& n : e.neighbours) table.add_row({n.change, label_of(n.candidate), n.verdict});
  table.append_to(page);
}

void append_shard(std::string& page, const ShardLimit& s) {
  if (s.parameter.empty()) return;
  std::string text = fmt::format("The largest shard has {} elements, {} of state: {} on rank {} ({}).",
                                 format_numel(s.largest), format_bytes(s.window), s.parameter, s.rank, s.explanation);
  if (s.cut)
    text += " This schedule cuts shards.";
  else if (s.decides)
    text += fmt::format(" It is above the chunk of {}, and so a chunk of its own.", s.chunk);
  append_paragraph(page, text);
  HtmlTable table("What would make it smaller", {"argument", "elements then"});
  for (const ShardLimit::Lever& lever : s.levers) table.add_row({lever.argument, format_numel(lever.largest)});
  if (!table.empty()) table.append_to(page);
}

void append_what_ifs(std::string& page, const Explanation& e) {
  HtmlTable table("What would change the answer", {"change", "answer", "step", "needs at most"}, 2);
  for (const WhatIf& w : e.what_ifs)
    table.add_row({w.change, w.note.empty() ? (w.differs ? "" : "still ") + w.recommendation : w.note,
                   w.step ? format_seconds(*w.step) : "-", w.needs ? format_bytes(*w.needs) : "-"},
                  w.differs ? "picked" : "");
  if (!table.empty()) table.append_to(page);
}

void append_peak(std::string& page, const Phase& phase) {
  const std::string name = phase.name + (phase.variant.empty() ? "" : " (" + phase.variant + ")");
  page += fmt::format("<details><summary>What is alive at the peak of {}</summary>\n", escaped(name));
  HtmlTable table("", {"what", "bytes", ""}, 1, HtmlTable::Last::words);
  for (const PeakTerm& term : phase.terms) table.add_row({term.name, format_bytes(term.bytes), term.origin});
  table.add_row({"in all", format_bytes(phase.device_peak), ""}, "sum");
  for (const NamedBytes& more : phase.uncertainty)
    table.add_row({more.name, format_bytes(more.bytes), "may come on top"});
  table.append_to(page);
  page += "</details>\n";
}

}  // namespace

void append_explanation(std::string& page, const HtmlCandidate& candidate) {
  if (candidate.explanation) {
    const Explanation& e = *candidate.explanation;
    append_path(page, e);
    append_bounds(page, e);
    append_neighbours(page, e);
    append_shard(page, e.shard);
    append_what_ifs(page, e);
  }
  for (const Phase& phase : candidate.peaks) append_peak(page, phase);
}

}  // namespace ebb::reports
