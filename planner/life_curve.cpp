// Live bytes over a steady step. The trace knows the order of events, and in forward and backward the layer they belong
// to; the simulation knows when the phases end. So forward and backward keep the trace's clock, stretched to their
// simulated end, and within finalize and step time passes with the bytes that are allocated: what is brought in is
// worked on for as long as it is large.
#include "planner/life_curve.hpp"

#include <algorithm>

namespace ebb {

namespace {

/// Seconds of each event of [begin, end), spread over [from, to] in proportion to allocated bytes.
void spread(const std::vector<AllocationEvent>& events, std::size_t begin, std::size_t end, Seconds from, Seconds to,
            std::vector<Seconds>& at) {
  double all = 0;
  for (std::size_t i = begin; i < end; ++i) all += static_cast<double>(events[i].bytes.value);
  double passed = 0;
  for (std::size_t i = begin; i < end; ++i) {
    at[i] = from + (to - from) * (all > 0 ? passed / all : 0.0);
    passed += static_cast<double>(events[i].bytes.value);
  }
}

/// Forward and backward, [0, end): the clock's time, stretched so that it ends at `until`.
void stretch(const TracePart& step, std::size_t end, Seconds until, std::vector<Seconds>& at) {
  const double last = step.clock.empty() ? 0 : step.clock.back().at.value;
  std::size_t tick = 0;
  Seconds now{0};
  for (std::size_t i = 0; i < end; ++i) {
    while (tick < step.clock.size() && step.clock[tick].event <= i) now = step.clock[tick++].at;
    at[i] = last > 0 ? until * (now.value / last) : Seconds{0};
  }
}

}  // namespace

std::vector<CurvePoint> live_curve(const TracePart& step, const std::vector<LivePoint>& live, const StepTimes& times) {
  std::size_t finalize = step.events.size();
  std::size_t optimizer = step.events.size();
  for (const PhaseMark& mark : step.marks) {
    if (mark.phase == Phase::finalize) finalize = mark.event;
    if (mark.phase == Phase::step) optimizer = mark.event;
  }
  std::vector<Seconds> at(step.events.size());
  stretch(step, finalize, times.backward_end, at);
  spread(step.events, finalize, optimizer, times.backward_end, times.finalize_end, at);
  spread(step.events, optimizer, step.events.size(), times.finalize_end, times.step_end, at);
  std::vector<CurvePoint> curve;
  curve.reserve(live.size());
  for (const LivePoint& point : live) curve.push_back({at[point.event], point.bytes});
  return curve;
}

std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& curve, std::size_t most) {
  if (curve.size() <= most) return curve;
  // Every stretch of as many events keeps its first, last, highest and lowest point, in order.
  const std::size_t stretches = most / 4;
  std::vector<CurvePoint> kept;
  for (std::size_t s = 0; s < stretches; ++s) {
    const auto begin = curve.begin() + static_cast<std::ptrdiff_t>(curve.size() * s / stretches);
    const auto end = curve.begin() + static_cast<std::ptrdiff_t>(curve.size() * (s + 1) / stretches);
    const auto [low, high] =
        std::minmax_element(begin, end, [](const CurvePoint& a, const CurvePoint& b) { return a.bytes < b.bytes; });
    std::array<std::vector<CurvePoint>::const_iterator, 4> picks = {begin, low, high, end - 1};
    std::sort(picks.begin(), picks.end());
    for (std::size_t i = 0; i < picks.size(); ++i)
      if (i == 0 || picks[i] != picks[i - 1]) kept.push_back(*picks[i]);
  }
  return kept;
}

}  // namespace ebb
