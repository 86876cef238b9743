// summarize: one pass over the ops for the ends of phases, one sweep over memory events in time order for the peaks.
//
// Device memory has two curves. "Allocated" is what the allocator counts: from the allocation to the release. "Held" is
// what nobody else can use: to the end of the release's `after` where that is later (torch's record_stream). Host
// memory is one curve, pinned and pageable together, counted as held. Not here: rounding and fragmentation (sim/).
#include "models/timeline.hpp"

#include <algorithm>
#include <array>

#include "models/errors.hpp"

namespace ebb {
namespace {

/// A moment in time order: events of one tick follow each other by op id.
struct Moment {
  Ticks tick{0};
  std::uint32_t op = 0;
  constexpr auto operator<=>(const Moment&) const = default;
};

struct Live {
  Bytes allocated{0};
  Bytes held{0};
  Bytes pinned{0};
  Bytes pageable{0};

  void add(const Buffer& buffer, MemoryEvent::What what) {
    using What = MemoryEvent::What;
    const Bytes change = what == What::allocate ? buffer.bytes : Bytes{-buffer.bytes.value};
    const bool counts_held = what != What::release;
    if (buffer.memory == Memory::device) {
      if (what != What::hand_back) allocated += change;
      if (counts_held) held += change;
    } else if (counts_held) {
      (buffer.memory == Memory::pinned ? pinned : pageable) += change;
    }
  }
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

/// All changes of live memory, in time order.
void collect(const Plan& plan, const Timeline& timeline, std::vector<MemoryEvent>& events) {
  using What = MemoryEvent::What;
  events.clear();
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.kind != OpKind::allocate && op.kind != OpKind::release) continue;
    EBB_ASSERT(op.buffer.index < plan.buffers.size());
    if (op.kind == OpKind::allocate) {
      events.push_back({timeline.start[i], i, What::allocate});
      continue;
    }
    const Ticks released = timeline.end[i];
    Ticks handed_back = released;
    if (op.after.valid()) {
      EBB_ASSERT(op.after.index < plan.ops.size());
      handed_back = std::max(released, timeline.end[op.after.index]);
    }
    if (handed_back == released) {
      events.push_back({released, i, What::release_and_hand_back});
    } else {
      events.push_back({released, i, What::release});
      events.push_back({handed_back, i, What::hand_back});
    }
  }
  std::sort(events.begin(), events.end());
}

void raise(PhaseSummary& phase, const Live& live) {
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
  collect(plan, timeline, scratch);

  Live live;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.initial) live.add(buffer, MemoryEvent::What::allocate);
  }
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
