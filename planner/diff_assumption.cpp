// From differences to figures.
//
// The method. Exposure (diff_exposure.hpp) splits the step's difference over classes of ops without remainder. A class
// rests on one figure of the cluster, with three exceptions, where the spans themselves decide:
//
//   kernels  take bytes at a rate or calls at a cost each. Per rate (Adam, unfused Adam, HBM) the differences of the
//            ops' durations are fitted, by least squares, to
//                duration_measured - duration_predicted = x * bytes + y * calls,
//            and the class's exposed difference is split as x * sum(bytes) : y * sum(calls). The part by calls, and
//            waiting for a kernel to be issued, is calls.launch's.
//   copies   have three figures for one exposed difference: a direction alone, the other alone, both at once
//            (copy_regimes). With t the predicted seconds in a regime and r the ratio of its rates, measured over
//            predicted, each figure's own effect is t * (1 / r - 1), less what other classes hide. Where both run and
//            one direction got slower while the other got faster, the slower is held back by its own link, not by what
//            both share. What the three effects do not add up to is overlap lost or won: the copies ran as fast, but no
//            longer side by side, because something between them takes another time. It goes to the figure whose ops,
//            hidden behind the copies, changed most.
//   collectives  rest on NVLink or on the network, by the ops that take most of their time.
#include "planner/diff_assumption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "planner/diff_figures.hpp"

namespace ebb {

namespace {

/// A part of the step, how long it was predicted and how far it was off, and what explains most of that.
struct Scope {
  const char* name;
  double predicted = 0;
  double difference = 0;
  Assumption first;

  double part() const { return predicted > 0 ? difference / predicted : 0; }
  double explained() const { return predicted > 0 ? std::abs(first.seconds) / predicted : 0; }
};

Scope scope_of(const char* name, const RankTimeline& predicted, const RankTimeline& measured, Window in_predicted,
               Window in_measured) {
  Scope scope{name, to_seconds(in_predicted.end - in_predicted.begin).value, 0, {}};
  scope.difference = to_seconds(in_measured.end - in_measured.begin).value - scope.predicted;
  const std::vector<Assumption> all = assumptions_of(predicted, measured, in_predicted, in_measured);
  if (!all.empty()) scope.first = all.front();
  // One that works against the difference explains nothing of it, unless the difference is nothing.
  for (const Assumption& a : all) {
    if (std::abs(scope.part()) < 0.01 || (a.seconds > 0) != (scope.difference > 0)) continue;
    scope.first = a;
    break;
  }
  return scope;
}

std::string share_of(const Scope& scope) {
  const double share = scope.difference == 0 ? 0 : scope.first.seconds / scope.difference;
  const std::string of = fmt::format("of the {}'s difference", scope.name);
  if (share > 0.005 && share < 1.05) return fmt::format("{:.0f} % {}", 100 * std::min(share, 1.0), of);
  return fmt::format("{}{} of the {}, which others partly make up for", scope.first.seconds > 0 ? "+" : "-",
                     format_seconds({std::abs(scope.first.seconds)}), scope.name);
}

std::string home_of(const std::string& figure, const std::string& cluster, bool alone) {
  std::string home = figure;
  if (!alone && figure == "host_link.both") home += " or host_link.host_both";
  if (!alone && (figure == "host_link.h2d" || figure == "host_link.d2h")) home += " or host_link.host_one_way";
  if (!cluster.empty()) home += " of cluster " + cluster;
  if (figure == "gpu.compute_efficiency") home += ", or the job's compute.step_seconds";
  return home;
}

}  // namespace

std::vector<Assumption> assumptions_of(const RankTimeline& predicted, const RankTimeline& measured, Window in_predicted,
                                       Window in_measured) {
  EBB_ASSERT(predicted.ops.size() == measured.ops.size());
  const diff_figures::Sides sides{predicted,
                                  measured,
                                  in_predicted,
                                  in_measured,
                                  exposure_of(predicted.ops, in_predicted),
                                  exposure_of(measured.ops, in_measured)};
  std::vector<Assumption> all;
  diff_figures::add_compute(sides, all);
  diff_figures::add_collectives(sides, all);
  diff_figures::add_kernels(sides, all);
  diff_figures::add_host(sides, all);
  diff_figures::add_copies(sides, all);
  std::stable_sort(all.begin(), all.end(),
                   [](const Assumption& a, const Assumption& b) { return std::abs(a.seconds) > std::abs(b.seconds); });
  return all;
}

std::string verdict_of(const RankTimeline& predicted, const RankTimeline& measured, const std::string& cluster,
                       bool alone) {
  std::vector<Scope> scopes = {
      scope_of("step", predicted, measured, step_window(predicted.ops), step_window(measured.ops))};
  const auto update = [](const RankTimeline& rank) {
    for (const auto& [phase, window] : phase_windows(rank.ops))
      if (phase == Phase::step) return window;
    return Window{};
  };
  scopes.push_back(scope_of("optimizer step", predicted, measured, update(predicted), update(measured)));
  const Scope& scope = *std::max_element(scopes.begin(), scopes.end(),
                                         [](const Scope& a, const Scope& b) { return a.explained() < b.explained(); });
  if (scope.explained() < 0.01) return "nothing stands out: every class is within 1 %.";
  return fmt::format("{} ({}): {}.", scope.first.said, home_of(scope.first.figure, cluster, alone), share_of(scope));
}

}  // namespace ebb
