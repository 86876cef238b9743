#include "planner/first_step.hpp"

#include <algorithm>

#include "planner/host_parts.hpp"

namespace ebb {

namespace {

/// Moments of all owned elements.
Bytes moments_of(const RankModel& rank) { return bytes_of(rank.owned, rank.job->precision.moment_bytes()); }

/// The part of them that `candidate` offloads: blocks ask for exactly their tensors.
Bytes offloaded_moments(const HostParts& parts) { return parts.moments.asked; }

Seconds touch_time(Bytes pageable, const Host& host) {
  return sim::pin_time({.asked = pageable, .held = pageable}, host);
}

Seconds not_below_zero(Seconds t) { return std::max(t, Seconds{0}); }

}  // namespace

FirstSteps first_steps(const RankModel& rank, const Candidate& candidate, Seconds optimizer, Seconds step) {
  const Cluster& cluster = rank.job->cluster;
  const Host& host = cluster.host;
  const HostParts parts = host_parts(rank, candidate);
  const Seconds moments_in = offloaded_moments(parts) / cluster.host_link.h2d.value;
  const Seconds moments_out = offloaded_moments(parts) / cluster.host_link.d2h.value;

  FirstSteps result{.optimizer = optimizer, .first = step, .second = step};
  Seconds in_optimizer = moments_of(rank) / cluster.gpu.hbm.value;  // what the first optimizer step takes longer
  Seconds elsewhere{0};                                             // ... and the rest of the first step
  switch (candidate.policy) {
    case Policy::resident:
      break;
    case Policy::full_reload:
      elsewhere = sim::pin_time(parts.masters, host) - moments_out - moments_in;
      result.second += sim::pin_time(parts.moments, host);
      result.pinned_in_first = parts.masters.held;
      result.pinned_in_second = parts.moments.held;
      break;
    case Policy::chunked:
      in_optimizer += sim::pin_time(parts.moments, host) - moments_in;
      result.pinned_before = parts.masters.held;
      result.pinned_in_first = parts.moments.held;
      break;
    case Policy::windowed:
      // Nothing comes in, but the host waits for each chunk to be out before it goes on: no gain, as both directions
      // overlap in a steady step.
      in_optimizer += sim::pin_time(parts.moments, host);
      elsewhere = sim::pin_time(parts.masters, host);
      result.pinned_in_first = parts.masters.held + parts.moments.held;
      break;
    case Policy::cpu_adam:
      in_optimizer = sim::pin_time(parts.grads, host) + touch_time(parts.pageable, host);
      result.pinned_before = parts.masters.held;
      result.pinned_in_first = parts.grads.held;
      break;
    case Policy::pipelined:
    case Policy::tidal:
      in_optimizer = Seconds{0};
      result.pinned_before = parts.region.held;
      break;
  }
  result.optimizer = not_below_zero(optimizer + in_optimizer);
  result.first = not_below_zero(step + in_optimizer + elsewhere);
  return result;
}

}  // namespace ebb
