// How far a prediction was off, as tables; and what each stream does, so that a timeline can be read without its
// drawing.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/quantity_text.hpp"
#include "reports/html_blob.hpp"
#include "reports/html_parts.hpp"

namespace ebb::reports {

namespace {

std::string percent(double part) { return fmt::format("{:+.1f} %", part * 100); }
std::string rate_or_dash(const std::optional<BytesPerSecond>& rate) { return rate ? format_bandwidth(*rate) : "-"; }

std::string signed_seconds(Seconds seconds) {
  return fmt::format("{}{}", seconds.value < 0 ? "-" : "+", format_seconds({std::abs(seconds.value)}));
}

void append_times(std::string& page, const DiffRank& rank) {
  HtmlTable table("", {"", "predicted", "measured", "least", "most", "difference", ""});
  const auto add = [&](const char* name, const DiffTime& time) {
    table.add_row({name, format_seconds(time.predicted), format_seconds(time.measured), format_seconds(time.least),
                   format_seconds(time.most), signed_seconds(time.difference()), percent(time.relative())});
  };
  add("step", rank.step);
  add("optimizer step", rank.update);
  for (const DiffPhase& phase : rank.phases)
    table.add_row({phase.name, format_seconds(phase.predicted), format_seconds(phase.measured), "", "",
                   signed_seconds(phase.measured - phase.predicted),
                   phase.predicted.value > 0 ? percent(phase.measured.value / phase.predicted.value - 1) : "-"});
  table.append_to(page);
}

void append_classes(std::string& page, const DiffRank& rank) {
  double all = 0;
  for (const DiffClass& c : rank.classes) all += c.difference().value;
  HtmlTable table("By class of operation",
                  {"class", "operations", "bytes", "busy, predicted", "busy, measured", "rate, predicted",
                   "rate, measured", "charged, predicted", "charged, measured", "difference", "share"});
  for (const DiffClass& c : rank.classes)
    table.add_row({c.name, format_numel({c.ops}), c.bytes.value > 0 ? format_bytes(c.bytes) : "-",
                   format_seconds(c.busy_predicted), format_seconds(c.busy_measured), rate_or_dash(c.rate_predicted),
                   rate_or_dash(c.rate_measured), format_seconds(c.exposed_predicted),
                   format_seconds(c.exposed_measured), signed_seconds(c.difference()),
                   all == 0 ? "-" : fmt::format("{:.0f} %", c.difference().value / all * 100)});
  table.append_to(page);
  page +=
      "<p class=\"hint\">Every moment of the step is charged to one class, the first of this list that runs then; so "
      "the differences add up to the step's.</p>\n";
}

void append_memory(std::string& page, const DiffMemory& memory) {
  HtmlTable table("Memory of this rank", {"", "predicted", "measured", "difference"});
  const auto add = [&](const std::string& name, Bytes predicted, Bytes measured) {
    const std::int64_t off = measured.value - predicted.value;
    table.add_row({name, format_bytes(predicted), format_bytes(measured),
                   off == 0 ? "equal" : fmt::format("{}{}", off < 0 ? "-" : "+", format_bytes({std::abs(off)}))});
  };
  add("alive at the peak", memory.live_predicted, memory.live_measured);
  for (const DiffBytes& phase : memory.live_by_phase) add("alive in " + phase.name, phase.predicted, phase.measured);
  for (const DiffBytes& host : memory.host) add(host.name + " on the host", host.predicted, host.measured);
  for (const auto& [name, bytes] : memory.of_run) table.add_row({name, "", format_bytes(bytes), ""});
  table.append_to(page);
}

struct Lane {
  Ticks busy{0};
  Bytes bytes{0};
  std::size_t ops = 0;
};

std::array<Lane, kHtmlStreams> lanes_of(const HtmlTimeline& timeline) {
  std::array<Lane, kHtmlStreams> lanes;
  for (const HtmlSpan& span : timeline.spans) {
    if (timeline.kinds[span.kind].family == HtmlFamily::waiting) continue;
    Lane& lane = lanes[static_cast<std::size_t>(span.stream)];
    lane.busy += span.end - span.start;
    lane.bytes += span.bytes;
    lane.ops += span.ops;
  }
  return lanes;
}

}  // namespace

std::string_view name_of(HtmlFamily family) {
  constexpr std::string_view kNames[] = {"compute", "copy-in", "copy-out", "collective", "kernel", "host", "waiting"};
  static_assert(std::size(kNames) == kHtmlFamilies);
  return kNames[static_cast<std::size_t>(family)];
}

std::string_view name_of(HtmlStream stream) {
  constexpr std::string_view kNames[] = {"compute", "to device", "to host", "collectives", "host"};
  static_assert(std::size(kNames) == kHtmlStreams);
  return kNames[static_cast<std::size_t>(stream)];
}

void append_streams(std::string& page, const HtmlCandidate& candidate) {
  if (!candidate.predicted && !candidate.measured) return;
  HtmlTable table("", {"stream", "", "operations", "busy", "of the step", "bytes"}, 2);
  std::array<std::array<Lane, kHtmlStreams>, 2> sides;
  if (candidate.predicted) sides[0] = lanes_of(*candidate.predicted);
  if (candidate.measured) sides[1] = lanes_of(*candidate.measured);
  for (std::size_t stream = 0; stream < kHtmlStreams; ++stream)
    for (std::size_t side = 0; side < 2; ++side) {
      const std::optional<HtmlTimeline>& timeline = side == 0 ? candidate.predicted : candidate.measured;
      const Lane& lane = sides[side][stream];
      if (!timeline || lane.ops == 0) continue;
      const double part =
          static_cast<double>(lane.busy.value) / static_cast<double>(std::max(timeline->step, Ticks{1}).value);
      table.add_row({std::string(name_of(static_cast<HtmlStream>(stream))), side == 0 ? "predicted" : "measured",
                     format_numel({static_cast<std::int64_t>(lane.ops)}), format_seconds(to_seconds(lane.busy)),
                     fmt::format("{:.1f} %", part * 100), lane.bytes.value > 0 ? format_bytes(lane.bytes) : "-"});
    }
  if (!table.empty()) table.append_to(page);
}

void append_diff(std::string& page, const DiffReport& diff) {
  const DiffRank& rank = diff.decides();
  page +=
      fmt::format("<p class=\"verdict small{}\">{}</p>\n", diff.failures.empty() ? "" : " bad", escaped(rank.verdict));
  for (const std::string& failure : diff.failures)
    page += fmt::format("<p class=\"beware\">{}</p>\n", escaped(failure));
  page += fmt::format("<p class=\"hint\">{}: {}, rank {}, median of {} measured steps{}</p>\n",
                      escaped(diff.measured_file), escaped(diff.candidate), rank.rank, rank.repeats,
                      diff.ranks.size() > 1 ? fmt::format("; the slowest of {} ranks", diff.ranks.size()) : "");
  append_times(page, rank);
  append_classes(page, rank);
  append_memory(page, rank.memory);
  if (diff.provenance.empty()) return;
  HtmlTable of("Where it ran", {"", ""}, 2);
  for (const auto& [name, value] : diff.provenance) of.add_row({name, value});
  of.append_to(page);
}

}  // namespace ebb::reports
