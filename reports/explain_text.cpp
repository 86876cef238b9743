// `ebb explain` on a terminal: where the step goes, what decides it, what no schedule can be below, why no neighbour is
// better, what would change the answer, and the peak of each phase.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/quantity_text.hpp"
#include "reports/answer_text.hpp"
#include "reports/answer_text_parts.hpp"
#include "reports/explain.hpp"
#include "reports/wrap.hpp"

namespace ebb::reports {

namespace {

std::string title(const char* text, const Style& style) { return fmt::format("\n{}\n", style.bold(text)); }

std::string described(const Candidate& c) {
  const std::string parameters = parameters_of(c);
  if (parameters == "-") return c.policy;
  // As much as there is, not the least: 0 is no limit.
  const std::string size = c.chunk_size_mb == 0 ? "0 MiB (all at once)" : "";
  return fmt::format("{} {}", c.policy,
                     size.empty() ? parameters : size + parameters.substr(parameters.find("MiB") + 3));
}

void append_path(std::string& text, const Explanation& e, const Style& style) {
  text += title("Where the step goes", style);
  Table table({{"phase", Align::left},
               {"what", Align::left},
               {"stream", Align::left},
               {"waits mostly for", Align::left},
               {"operations"},
               {"time"},
               {"share"}});
  double sum = 0;
  for (const PathSegment& s : e.segments) {
    table.add_row({s.phase, s.what, s.stream, s.waited_for == "nothing" ? "-" : s.waited_for,
                   s.operations > 0 ? format_numel({s.operations}) : "-", format_seconds(s.time),
                   fmt::format("{:.1f} %", s.percent)});
    sum += s.percent;
  }
  table.add_row({"in all", fmt::format("the slowest rank, {}", e.rank), "", "", format_numel({e.path_operations}),
                 format_seconds(e.step), fmt::format("{:.1f} %", sum)});
  append_table(text, table, style);
  text += wrapped(e.bottleneck.sentence);
}

/// Each bound before what is achieved, and for what it holds.
void append_bounds(std::string& text, const Explanation& e, const Candidate& c, const Style& style) {
  text += title("What no schedule can be below", style);
  text +=
      wrapped(fmt::format("the step phase, for the bytes that {} moves in it (another policy, fraction or chunk may "
                          "move others), takes at least",
                          described(c)),
              2);
  Seconds highest{0};
  for (const LowerBound& bound : e.bounds) {
    text += wrapped(fmt::format("  {}: {} for {}", bound.name, format_seconds(bound.time), bound.origin), 4);
    highest = std::max(highest, bound.time);
  }
  std::string achieved = fmt::format("  achieved: {}", format_seconds(e.optimizer));
  if (highest.value > 0)
    achieved += fmt::format(", {:.2f} times the highest of these", e.optimizer.value / highest.value);
  text +=
      wrapped(fmt::format("{}; the whole step takes {} more than resident's", achieved, format_seconds(e.added)), 4);
  text += wrapped(fmt::format("memory, under any policy, is at least {} at the peak: with no optimizer state on the "
                              "device at all (rank {})",
                              format_bytes(e.memory.least), e.memory.rank),
                  2);
  text += wrapped(fmt::format("  achieved: {} allocated at the peak, {} more", format_bytes(c.device_peak),
                              format_bytes(c.device_peak - e.memory.least)),
                  4);
}

void append_neighbours(std::string& text, const Explanation& e, const Style& style) {
  if (e.neighbours.empty()) return;
  text += title("Why not its neighbours", style);
  for (const Neighbour& n : e.neighbours)
    text += wrapped(fmt::format("  {}, {}: {}", n.change, described(n.candidate), n.verdict), 4);
}

/// What the largest shard means for the candidate's chunk.
std::string consequence(const ShardLimit& s) {
  if (s.cut) return "This schedule cuts shards, so that none bounds its slots.";
  if (s.chunk.empty()) return "Chunks cannot be smaller than that.";
  if (s.decides)
    return fmt::format(
        "It is above the chunk of {}: that shard is a chunk of its own, and a smaller limit changes "
        "nothing for it.",
        s.chunk);
  return fmt::format("The chunk of {} is above it; a limit below the shard would change nothing for it.", s.chunk);
}

void append_shard(std::string& text, const Explanation& e, const Style& style) {
  const ShardLimit& s = e.shard;
  if (s.parameter.empty()) return;
  text += title("What Megatron keeps whole", style);
  text += wrapped(fmt::format("The largest shard has {} elements, {} of state: {} on rank {} ({}). {}",
                              format_numel(s.largest), format_bytes(s.window), s.parameter, s.rank, s.explanation,
                              consequence(s)));
  for (const ShardLimit::Lever& lever : s.levers)
    text += wrapped(fmt::format("  {} would make it {} elements", lever.argument, format_numel(lever.largest)), 4);
  for (const std::string& argument : s.without_effect)
    text += wrapped(fmt::format("  {} would not make it smaller", argument), 4);
}

/// What stands in the way, as the end of a sentence.
std::string limit_text(const Tide& t) {
  switch (t.limit) {
    case Tide::Limit::nothing:
      return "Nothing limits it: no state is left to move in the step. What it still costs is Adam in the step, and "
             "gathers and reductions that copies slow down in other phases.";
    case Tide::Limit::link:
      return "The link limits it: the last backward or the first forward ends before more has crossed.";
    case Tide::Limit::valley:
      return "The valley limits it: activations leave the room too late, or want it back too early.";
    case Tide::Limit::cap:
      return fmt::format("The cap limits it: it leaves {} for state beside what a step needs.", format_bytes(t.room));
    case Tide::Limit::second_pass:
      return "Gathered FP8 weights limit it: a second pass reads the masters, so that nothing stays behind the step.";
  }
  return "";
}

/// "11.09 ms in step, 12.90 ms in gather": what is left out is less than a hundredth of it all.
std::string parts_text(const Tide& t) {
  std::string text;
  Seconds least{0};
  for (const TidePart& part : t.parts) least.value += std::abs(part.time.value) / 100;
  for (const TidePart& part : t.parts) {
    if (std::abs(part.time.value) < least.value) continue;
    text += fmt::format("{}{}{} in {}", text.empty() ? "" : ", ", part.time.value < 0 ? "less " : "",
                        format_seconds({std::abs(part.time.value)}), part.phase);
  }
  return text;
}

void append_tide(std::string& text, const Explanation& e, const Style& style) {
  if (!e.tide) return;
  const Tide& t = *e.tide;
  text += title("What tidal would reach (Ebb's runtime)", style);
  text += wrapped(
      fmt::format("  a step of {} in pieces of {} elements on rank {}, the slowest, with {} allocated at its peak: {} "
                  "of it are exposed, beside resident's step without its optimizer",
                  format_seconds(t.step), format_numel(t.piece), t.rank, format_bytes(t.peak),
                  format_seconds(t.exposed)),
      4);
  const std::string parts = parts_text(t);
  if (!parts.empty()) text += wrapped(fmt::format("  more than resident there: {}", parts), 4);
  text += wrapped(
      fmt::format(
          "  no schedule exposes less than {}; while it computes, of {} of state {} never moves, {} can come in "
          "before the step and {} leave behind it, below a cap of {}",
          format_seconds(t.bound), format_bytes(t.state), format_bytes(t.kept), format_bytes(t.in), format_bytes(t.out),
          format_bytes(t.cap)),
      4);
  if (!t.keeps) text += wrapped("  " + std::string(kKeepsNothing), 4);
  text += wrapped("  " + limit_text(t), 4);
}

void append_what_ifs(std::string& text, const Explanation& e, const Style& style) {
  text += title("What would change the answer", style);
  for (const WhatIf& w : e.what_ifs) {
    std::string line = fmt::format("  {}: ", w.change);
    if (!w.note.empty()) line += w.note;
    if (w.step && w.needs)
      line += fmt::format("{}{}, step {}, needs {}", w.differs ? "" : "still ", w.recommendation,
                          format_seconds(*w.step), format_bytes(*w.needs));
    text += wrapped(line, 4);
  }
}

}  // namespace

std::string to_text(const ExplainReport& report, const Style& style) {
  std::string text = titled_job_line(report.header) +
                     fmt::format("{} ({})\n", described(report.candidate), report.chosen) +
                     worst_case_lines(report.worst_case);
  if (report.phase) {
    for (const Phase& phase : report.phases) append_phase(text, phase, style);
    append_curve(text, report.curve);
    return text;
  }
  if (report.explanation) {
    append_path(text, *report.explanation, style);
    append_bounds(text, *report.explanation, report.candidate, style);
    append_neighbours(text, *report.explanation, style);
    append_shard(text, *report.explanation, style);
    append_tide(text, *report.explanation, style);
    append_what_ifs(text, *report.explanation, style);
  }
  text += title("Memory by phase", style);
  append_phases(text, report.phases, style);
  return text + "Next: add --phase and a name from the first column\n";
}

}  // namespace ebb::reports
