#include "planner/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "planner/diff_assumption.hpp"
#include "planner/diff_exposure.hpp"

namespace ebb {

namespace {

using reports::DiffBytes;
using reports::DiffClass;
using reports::DiffMemory;
using reports::DiffPhase;
using reports::DiffRank;
using reports::DiffReport;
using reports::DiffTime;

std::string text_of(const Candidate& c) {
  std::string text(name_of(c.policy));
  if (c.chunk_numel.value > 0) text += fmt::format(", chunks of {}", format_numel(c.chunk_numel));
  if (c.policy == Policy::windowed) text += fmt::format(", {} MiB", c.chunk_size_mb);
  if (c.fraction < 1) text += fmt::format(", fraction {}", c.fraction);
  if (c.slots > 0) text += fmt::format(", {} slots", c.slots);
  if (c.cap.value > 0) text += fmt::format(", below {}", format_bytes(c.cap));
  return text;
}

std::string ranks_of(const TimelineFile& file) {
  const std::int64_t first = file.ranks.front().rank;
  return file.ranks.size() == 1 ? fmt::format("rank {}", first)
                                : fmt::format("ranks {} to {}", first, file.ranks.back().rank);
}

std::string plan_of(const TimelineFile& file) {
  return fmt::format("{} ({}) on {}", file.job, text_of(file.candidate), ranks_of(file));
}

bool same_op(const OpSpan& a, const OpSpan& b) {
  OpSpan at_once = b;
  at_once.start = a.start;
  at_once.end = a.end;
  return a == at_once;
}

void require_same_plan(const TimelineFile& predicted, const TimelineFile& measured, const std::string& predicted_name,
                       const std::string& measured_name) {
  const auto same_rank = [](const RankTimeline& a, const RankTimeline& b) {
    return a.rank == b.rank && std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), same_op);
  };
  if (predicted.plan_digest == measured.plan_digest &&
      std::equal(predicted.ranks.begin(), predicted.ranks.end(), measured.ranks.begin(), measured.ranks.end(),
                 same_rank))
    return;
  throw InputError({measured_name},
                   fmt::format("this is of another plan: {}, while {} is of {}", plan_of(measured), predicted_name,
                               plan_of(predicted)),
                   "predict the plan that was replayed: ebb simulate --plan plan.json --cluster NAME --timeline FILE");
}

Seconds median(std::vector<Ticks> ticks) {
  std::sort(ticks.begin(), ticks.end());
  const std::size_t half = ticks.size() / 2;
  if (ticks.size() % 2 == 1) return to_seconds(ticks[half]);
  return {(to_seconds(ticks[half - 1]).value + to_seconds(ticks[half]).value) / 2};
}

DiffTime time_of(const std::vector<Ticks>& predicted, const std::vector<Ticks>& measured) {
  const auto [least, most] = std::minmax_element(measured.begin(), measured.end());
  return {median(predicted), median(measured), to_seconds(*least), to_seconds(*most)};
}

std::vector<DiffPhase> phases_of(const RankTimeline& predicted, const RankTimeline& measured) {
  const auto in_predicted = phase_windows(predicted.ops);
  const auto in_measured = phase_windows(measured.ops);
  std::vector<DiffPhase> phases;
  for (std::size_t i = 0; i < in_predicted.size(); ++i) {
    const Window& p = in_predicted[i].second;
    const Window& m = in_measured[i].second;
    phases.push_back(
        {std::string(name_of(in_predicted[i].first)), to_seconds(p.end - p.begin), to_seconds(m.end - m.begin)});
  }
  return phases;
}

/// Of copies both ways: what moves while both run. Otherwise of the ops of the class.
double bytes_of_class(const RankTimeline& rank, OpClass cls) {
  if (cls == OpClass::copies_both) {
    const CopyRegimes in = copy_regimes(rank.ops, OpKind::copy_h2d);
    const CopyRegimes out = copy_regimes(rank.ops, OpKind::copy_d2h);
    return in.both * in.seconds_both + out.both * out.seconds_both;
  }
  double bytes = 0;
  for (const OpSpan& op : rank.ops)
    if (class_of(op) == cls) bytes += static_cast<double>(op.bytes.value);
  return bytes;
}

std::optional<BytesPerSecond> rate_of(const RankTimeline& rank, OpClass cls, double busy) {
  const double bytes = bytes_of_class(rank, cls);
  if (bytes <= 0 || busy <= 0) return std::nullopt;
  return BytesPerSecond{bytes / busy};
}

std::vector<DiffClass> classes_of(const RankTimeline& predicted, const RankTimeline& measured) {
  const Exposure p = exposure_of(predicted.ops, step_window(predicted.ops));
  const Exposure m = exposure_of(measured.ops, step_window(measured.ops));
  std::vector<DiffClass> classes;
  for (std::size_t i = 0; i < kOpClasses; ++i) {
    const auto cls = static_cast<OpClass>(i);
    DiffClass row;
    row.name = name_of(cls);
    row.ops = std::count_if(predicted.ops.begin(), predicted.ops.end(),
                            [&](const OpSpan& op) { return class_of(op) == cls; });
    row.busy_predicted = {p.busy[i]};
    row.busy_measured = {m.busy[i]};
    row.exposed_predicted = {p.exposed[i]};
    row.exposed_measured = {m.exposed[i]};
    row.rate_predicted = rate_of(predicted, cls, p.busy[i]);
    row.rate_measured = rate_of(measured, cls, m.busy[i]);
    row.bytes = {static_cast<std::int64_t>(std::min(bytes_of_class(predicted, cls), 9e18))};
    if (row.ops > 0 || row.exposed_predicted.value > 0 || row.exposed_measured.value > 0)
      classes.push_back(std::move(row));
  }
  return classes;
}

std::vector<std::pair<std::string, Bytes>> run_figures(const MemoryFigures& memory) {
  std::vector<std::pair<std::string, Bytes>> figures;
  const auto add = [&](const char* name, const std::optional<Bytes>& bytes) {
    if (bytes) figures.emplace_back(name, *bytes);
  };
  add("torch allocated", memory.torch_allocated_peak);
  add("torch reserved", memory.torch_reserved_peak);
  add("driver", memory.driver_peak);
  add("instruments", memory.instruments);
  return figures;
}

DiffMemory memory_of(const MemoryFigures& predicted, const MemoryFigures& measured) {
  DiffMemory memory;
  memory.live_predicted = predicted.live_peak;
  memory.live_measured = measured.live_peak;
  const auto bytes_in = [](const MemoryFigures& figures, Phase phase) {
    for (const auto& [known, bytes] : figures.live_by_phase)
      if (known == phase) return bytes;
    return Bytes{0};
  };
  for (int i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    const DiffBytes row{std::string(name_of(phase)), bytes_in(predicted, phase), bytes_in(measured, phase)};
    if (row.predicted.value > 0 || row.measured.value > 0) memory.live_by_phase.push_back(row);
  }
  memory.host = {{"pinned", predicted.pinned, measured.pinned}, {"pageable", predicted.pageable, measured.pageable}};
  memory.of_run = run_figures(measured);
  memory.forecast = run_figures(predicted);
  return memory;
}

DiffRank diff_of(const RankTimeline& predicted, const RankTimeline& measured, const std::string& cluster, bool alone) {
  DiffRank rank;
  rank.rank = predicted.rank;
  rank.repeats = measured.steps.size();
  rank.step = time_of(predicted.steps, measured.steps);
  rank.update = time_of(predicted.updates, measured.updates);
  rank.phases = phases_of(predicted, measured);
  rank.classes = classes_of(predicted, measured);
  rank.memory = memory_of(predicted.memory, measured.memory);
  rank.verdict = verdict_of(predicted, measured, cluster, alone);
  return rank;
}

/// The slowest rank's times decide; live bytes must be right everywhere.
std::vector<std::string> failures_of(const DiffReport& report) {
  std::vector<std::string> failures;
  const auto check = [&](const char* what, const DiffTime& time) {
    if (std::abs(time.relative()) > report.fail_above)
      failures.push_back(fmt::format("the {} is off by {:+.1f} %, more than {:g} %", what, 100 * time.relative(),
                                     100 * report.fail_above));
  };
  check("step", report.decides().step);
  check("optimizer step", report.decides().update);
  for (const DiffRank& rank : report.ranks)
    if (!rank.memory.live_equal()) failures.push_back(fmt::format("live bytes of rank {} differ", rank.rank));
  return failures;
}

}  // namespace

DiffReport diff(const TimelineFile& predicted, const TimelineFile& measured, double fail_above,
                const std::string& predicted_name, const std::string& measured_name) {
  require_same_plan(predicted, measured, predicted_name, measured_name);
  DiffReport report;
  report.predicted_file = predicted_name;
  report.measured_file = measured_name;
  report.measured_source = name_of(measured.source);
  report.job = measured.job;
  report.candidate = text_of(measured.candidate);
  report.cluster = predicted.cluster;
  report.provenance = measured.provenance;
  report.fail_above = fail_above;
  for (std::size_t i = 0; i < predicted.ranks.size(); ++i)
    report.ranks.push_back(
        diff_of(predicted.ranks[i], measured.ranks[i], predicted.cluster, predicted.ranks.size() == 1));
  const auto slowest =
      std::max_element(report.ranks.begin(), report.ranks.end(),
                       [](const DiffRank& a, const DiffRank& b) { return a.step.measured < b.step.measured; });
  report.slowest = static_cast<std::size_t>(slowest - report.ranks.begin());
  report.failures = failures_of(report);
  return report;
}

}  // namespace ebb
