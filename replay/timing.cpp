#include "replay/timing.hpp"

#include <algorithm>

namespace ebb::replay {

namespace {

Ticks between(StartGate::Clock::time_point zero, StartGate::Clock::time_point then) {
  constexpr std::int64_t kTicksPerNs = 1000;
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(then - zero).count();
  return {std::max<std::int64_t>(ns, 0) * kTicksPerNs};
}

/// An event of another stream may have passed just before the base event.
Ticks ticks_of(const Event& base, const Event& event) {
  return to_ticks({std::max(static_cast<double>(elapsed_ms(base, event)), 0.0) * 1e-3});
}

}  // namespace

StepClock::StepClock(const Plan& plan, const IssuePlan& issue)
    : base_(make_event(true)), start_(plan.ops.size()), end_(plan.ops.size()), host_(plan.ops.size()) {
  for (std::size_t op = 0; op < plan.ops.size(); ++op) {
    if (issue.steps[op].on_host) continue;
    start_[op] = make_event(true);
    end_[op] = make_event(true);
  }
}

void StepClock::cover(std::size_t ops) {
  const std::size_t before = end_.size();
  start_.resize(std::max(ops, before));
  end_.resize(start_.size());
  host_.resize(start_.size());
  for (std::size_t op = 0; op < end_.size(); ++op) {
    if (end_[op].get() != nullptr) continue;
    start_[op] = make_event(true);
    end_[op] = make_event(true);
  }
}

Timeline StepClock::read(const Plan& plan, const IssuePlan& issue, StartGate::Clock::time_point zero) const {
  Timeline timeline{TimelineSource::measured, {}, {}};
  timeline.start.resize(plan.ops.size());
  timeline.end.resize(plan.ops.size());
  for (std::uint32_t op = 0; op < plan.ops.size(); ++op) {
    Ticks& start = timeline.start[op];
    Ticks& end = timeline.end[op];
    if (issue.steps[op].on_host) {
      // As in a predicted timeline an op on the host starts when what it waits for has ended.
      start = between(zero, host_[op].arrived);
      for (const std::uint32_t dep : issue.waits_of(op)) start = std::max(start, timeline.end[dep]);
      start = std::min(start, between(zero, host_[op].waited));
      end = between(zero, host_[op].ended);
    } else {
      start = ticks_of(base_, start_[op]);
      end = ticks_of(base_, end_[op]);
    }
    end = std::max(end, start);
  }
  return timeline;
}

}  // namespace ebb::replay
