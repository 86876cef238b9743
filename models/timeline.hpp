// Timeline: when each op of a Plan ran, predicted or measured, indexed by the same op ids; and what follows
// from plan and timeline together: seconds and memory peaks per phase.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/plan.hpp"

namespace ebb {

enum class TimelineSource : std::uint8_t { predicted, measured };
std::string_view name_of(TimelineSource source);

struct Timeline {
  TimelineSource source = TimelineSource::predicted;
  std::vector<Ticks> start;  // by op id
  std::vector<Ticks> end;
};

/// One phase of a step. Durations partition the whole: a phase ends when its last op ends, and begins where the
/// phase before it ended.
struct PhaseSummary {
  Phase phase = Phase::forward;
  Ticks duration{0};
  Bytes peak_allocated{0};  // highest live bytes as the allocator counts them (a release counts when issued)
  Bytes peak_held{0};       // highest bytes that cannot be reused yet (a release counts when its `after` ended)
};

struct StepSummary {
  std::vector<PhaseSummary> phases;  // in order of appearance
  Ticks total{0};
  Bytes peak_allocated{0};
  Bytes peak_held{0};
  Bytes pinned{0};  // host bytes alive at the peak of host memory
  Bytes pageable{0};
};

/// Pure function of both. Precondition: timeline.end.size() == plan.ops.size(). O(ops log ops).
///
/// Events at one tick count in program order (by op id): a release before an allocation of a later op makes room for
/// it, an allocation before a release of a later op does not. The same order separates phases: what happens at the tick
/// where a phase ends belongs to it up to its last op. A phase that ends before the one that appeared earlier has no
/// duration of its own, and its peaks are what is alive at that point.
StepSummary summarize(const Plan& plan, const Timeline& timeline);

/// A change of live memory: `op` allocates or releases at `tick`, or its storage is handed back then.
struct MemoryEvent {
  enum class What : std::uint8_t { allocate, release, hand_back, release_and_hand_back };

  Ticks tick;
  std::uint32_t op = 0;
  What what = What::allocate;

  constexpr auto operator<=>(const MemoryEvent&) const = default;
};

/// The same into `out`, reusing its storage and that of `scratch`: for callers with thousands of plans.
void summarize(const Plan& plan, const Timeline& timeline, std::vector<MemoryEvent>& scratch, StepSummary& out);

}  // namespace ebb
