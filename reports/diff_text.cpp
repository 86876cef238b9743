#include "reports/diff_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "models/quantity_text.hpp"
#include "reports/answer_text_parts.hpp"
#include "reports/table.hpp"
#include "reports/wrap.hpp"

namespace ebb::reports {

namespace {

std::string signed_seconds(Seconds seconds) {
  return fmt::format("{}{}", seconds.value < 0 ? "-" : "+", format_seconds({std::abs(seconds.value)}));
}

std::string percent(double part) { return fmt::format("{:+.1f} %", 100 * part); }

std::string relative(Seconds measured, Seconds predicted) {
  return predicted.value > 0 ? percent(measured.value / predicted.value - 1) : "-";
}

void append_times(std::string& text, const DiffRank& rank, const Style& style) {
  Table table({{"", Align::left}, {"predicted"}, {"measured"}, {"least"}, {"most"}, {"off"}, {"by"}});
  const auto add = [&](const char* name, const DiffTime& t) {
    table.add_row({name, format_seconds(t.predicted), format_seconds(t.measured), format_seconds(t.least),
                   format_seconds(t.most), percent(t.relative()), signed_seconds(t.difference())});
  };
  add("step", rank.step);
  add("optimizer step", rank.update);
  append_table(text, table, style);
}

void append_phases(std::string& text, const DiffRank& rank, const Style& style) {
  Table table({{"phase", Align::left}, {"predicted"}, {"measured"}, {"off"}, {"by"}});
  for (const DiffPhase& phase : rank.phases)
    table.add_row({phase.name, format_seconds(phase.predicted), format_seconds(phase.measured),
                   relative(phase.measured, phase.predicted), signed_seconds(phase.measured - phase.predicted)});
  append_table(text, table, style);
}

std::string rate(const std::optional<BytesPerSecond>& rate) { return rate ? format_bandwidth(*rate) : "-"; }

constexpr double kWorthSharing = 0.005;  // of the step

void append_classes(std::string& text, const DiffRank& rank, const Style& style) {
  Table table({{"ops", Align::left}, {"count"}, {"bytes"}, {"exposed"}, {"measured"}, {"by"}, {"share"}});
  Table busy({{"ops", Align::left}, {"busy"}, {"measured"}, {"rate"}, {"measured"}});
  Seconds all{0};
  for (const DiffClass& c : rank.classes) all += c.difference();
  for (const DiffClass& c : rank.classes) {
    // Shares of next to nothing would be hundreds of per cent that cancel out.
    const bool shared = std::abs(all.value) > kWorthSharing * rank.step.predicted.value;
    table.add_row({c.name, c.ops > 0 ? fmt::format("{}", c.ops) : "-", c.bytes.value > 0 ? format_bytes(c.bytes) : "-",
                   format_seconds(c.exposed_predicted), format_seconds(c.exposed_measured),
                   signed_seconds(c.difference()),
                   shared ? fmt::format("{:.0f} %", 100 * c.difference().value / all.value) : "-"});
    if (c.busy_predicted.value > 0 || c.busy_measured.value > 0)
      busy.add_row({c.name, format_seconds(c.busy_predicted), format_seconds(c.busy_measured), rate(c.rate_predicted),
                    rate(c.rate_measured)});
  }
  append_table(text, table, style);
  text += "\n";
  append_table(text, busy, style);
  text += "busy: at least one of them ran; exposed: what the step waited for, which adds up to it.\n";
}

void append_memory(std::string& text, const DiffMemory& memory) {
  if (memory.live_equal()) {
    text += fmt::format("Live bytes equal in every phase; peak {} ({} B).\n", format_bytes(memory.live_measured),
                        memory.live_measured.value);
  } else {
    text += fmt::format("Live bytes differ: peak {} B predicted, {} B measured.\n", memory.live_predicted.value,
                        memory.live_measured.value);
    for (const DiffBytes& phase : memory.live_by_phase)
      if (phase.predicted != phase.measured)
        text += fmt::format("  {}: {} B predicted, {} B measured\n", phase.name, phase.predicted.value,
                            phase.measured.value);
  }
  for (const DiffBytes& host : memory.host)
    if (host.predicted.value > 0 || host.measured.value > 0)
      text += fmt::format("Host memory, {}: {} predicted, {} measured.\n", host.name, format_bytes(host.predicted),
                          format_bytes(host.measured));
  std::string run;
  for (const auto& [name, bytes] : memory.of_run)
    run += fmt::format("{}{} {}", run.empty() ? "" : ", ", name, format_bytes(bytes));
  if (!run.empty()) text += fmt::format("Device memory of the run: {}.\n", run);
}

}  // namespace

std::string to_text(const DiffReport& report, const Style& style) {
  const DiffRank& rank = report.decides();
  std::string text = style.bold(rank.verdict) + "\n\n";
  std::string what = fmt::format("{} ({}), rank {}", report.job, report.candidate, rank.rank);
  if (report.ranks.size() > 1) what += fmt::format(", the slowest of {}", report.ranks.size());
  text += wrapped(fmt::format("{}: predicted on {}, {} {}", what, report.cluster.empty() ? "a cluster" : report.cluster,
                              report.measured_source,
                              rank.repeats == 1 ? "once" : fmt::format("{} times, the median repeat", rank.repeats)),
                  2) +
          "\n";
  append_times(text, rank, style);
  text += "\n";
  append_phases(text, rank, style);
  text += "\n";
  append_classes(text, rank, style);
  text += "\n";
  append_memory(text, rank.memory);
  text += "\n";
  for (const std::string& failure : report.failures) text += style.bold("FAIL: " + failure) + "\n";
  if (report.failures.empty())
    text += style.green(fmt::format("Within {:g} %, live bytes equal.", 100 * report.fail_above)) + "\n";
  return text;
}

}  // namespace ebb::reports
