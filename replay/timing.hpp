// Times of one step: events before and after each device op, clock readings around each host op, and the Timeline that
// follows from them; and which repeat to show.
//
// Time 0 is the moment at which the gate opened: the base event on the device (the first thing on the compute stream
// behind it), StartGate::opened_at on the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/timeline.hpp"
#include "replay/cuda.hpp"
#include "replay/gate.hpp"
#include "replay/issue_plan.hpp"

namespace ebb::replay {

/// When the host came to an op of its own, had waited, and was done.
struct HostSpan {
  StartGate::Clock::time_point arrived;
  StartGate::Clock::time_point waited;
  StartGate::Clock::time_point ended;
};

class StepClock {
 public:
  /// Makes events for the device ops of `plan` on the current device.
  StepClock(const Plan& plan, const IssuePlan& issue);
  /// From now on there are events for every op of any plan with so many.
  void cover(std::size_t ops);

  void* base() const { return base_.get(); }
  void* start(std::uint32_t op) const { return start_[op].get(); }
  void* end(std::uint32_t op) const { return end_[op].get(); }
  HostSpan& host(std::uint32_t op) { return host_[op]; }

  /// Of the step that has just ended; everything is idle.
  Timeline read(const Plan& plan, const IssuePlan& issue, StartGate::Clock::time_point zero) const;

 private:
  Event base_;
  std::vector<Event> start_;
  std::vector<Event> end_;
  std::vector<HostSpan> host_;
};

/// Index of the median of at least one value: the lower one of two, the first of equal ones. Pure.
std::size_t median_index(std::span<const Ticks> values);

/// For each repeat the longest of all ranks. `by_rank`: at least one rank, as many repeats in each. Pure.
std::vector<Ticks> slowest_of_ranks(std::span<const std::vector<Ticks>> by_rank);

/// Duration of Phase::step; 0 where there is none. Pure.
Ticks update_of(const StepSummary& summary);

}  // namespace ebb::replay
