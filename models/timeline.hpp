// Timeline: when each op of a Plan ran, predicted or measured, indexed by the same op ids; and what follows
// from plan and timeline together: seconds and memory peaks per phase.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/plan.hpp"

namespace ebb {

enum class TimelineSource : std::uint8_t { predicted, measured };

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
StepSummary summarize(const Plan& plan, const Timeline& timeline);

}  // namespace ebb
