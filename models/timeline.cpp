// summarize: one pass over the ops for the ends of phases, one sweep over memory events (memory_curve.hpp) in time
// order for the peaks. Of host memory there is one peak, of pinned and pageable together.
#include "models/timeline.hpp"

#include <algorithm>
#include <array>

#include "models/errors.hpp"
#include "models/memory_curve.hpp"

namespace ebb {
namespace {

/// A moment in time order: events of one tick follow each other by op id.
struct Moment {
  Ticks tick{0};
  std::uint32_t op = 0;
  constexpr auto operator<=>(const Moment&) const = default;
};

/// Phases in order of appearance into `phases`, durations set; the last moment of each into the result.
std::array<Moment, kPhaseCount> phase_ends(const Plan& plan, const Timeline& timeline,
                                           std::vector<PhaseSummary>& phases) {
  constexpr std::size_t kUnseen = kPhaseCount;
  std::array<std::size_t, kPhaseCount> place;
  place.fill(kUnseen);
  std::array<Moment, kPhaseCount> ends{};
  phases.clear();
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const Phase phase = plan.ops[i].phase;
    EBB_ASSERT(static_cast<int>(phase) < kPhaseCount);
    std::size_t& p = place[static_cast<std::size_t>(phase)];
    if (p == kUnseen) {
      p = phases.size();
      phases.push_back({.phase = phase});
    }
    ends[p] = std::max(ends[p], Moment{timeline.end[i], i});
  }
  for (std::size_t p = 1; p < phases.size(); ++p) ends[p] = std::max(ends[p], ends[p - 1]);
  for (std::size_t p = 0; p < phases.size(); ++p) {
    phases[p].duration = ends[p].tick - (p == 0 ? Ticks{0} : ends[p - 1].tick);
  }
  return ends;
}

void raise(PhaseSummary& phase, const LiveBytes& live) {
  phase.peak_allocated = std::max(phase.peak_allocated, live.allocated);
  phase.peak_held = std::max(phase.peak_held, live.held);
}

}  // namespace

std::string_view name_of(TimelineSource source) {
  return source == TimelineSource::predicted ? "predicted" : "measured";
}

void summarize(const Plan& plan, const Timeline& timeline, std::vector<MemoryEvent>& scratch, StepSummary& out) {
  EBB_ASSERT(timeline.start.size() == plan.ops.size() && timeline.end.size() == plan.ops.size());
  const auto ends = phase_ends(plan, timeline, out.phases);
  memory_events(plan, timeline, scratch);

  LiveBytes live = initial_bytes(plan);
  out.pinned = live.pinned;
  out.pageable = live.pageable;
  out.peak_allocated = live.allocated;
  out.peak_held = live.held;

  auto event = scratch.begin();
  for (std::size_t p = 0; p < out.phases.size(); ++p) {
    PhaseSummary& phase = out.phases[p];
    raise(phase, live);  // alive when it begins
    // Storage handed back after the last op of the last phase would be left over: it can only lower the curves.
    for (; event != scratch.end() && Moment{event->tick, event->op} <= ends[p]; ++event) {
      live.add(plan.buffers[plan.ops[event->op].buffer.index], event->what);
      raise(phase, live);
      if (live.pinned + live.pageable > out.pinned + out.pageable) {
        out.pinned = live.pinned;
        out.pageable = live.pageable;
      }
    }
    out.peak_allocated = std::max(out.peak_allocated, phase.peak_allocated);
    out.peak_held = std::max(out.peak_held, phase.peak_held);
  }
  out.total = out.phases.empty() ? Ticks{0} : ends[out.phases.size() - 1].tick;
}

StepSummary summarize(const Plan& plan, const Timeline& timeline) {
  std::vector<MemoryEvent> events;
  StepSummary summary;
  summarize(plan, timeline, events, summary);
  return summary;
}

}  // namespace ebb
