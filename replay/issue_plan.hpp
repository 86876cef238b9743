// IssuePlan: what the host thread does around each op of a plan: which events it waits for, which it records, and how
// far it may run ahead of the device. Worked out once, so that the issue loop looks nothing up.
//
// Streams. A dependency on the same stream holds by itself, one on a host op by the order of issue: the host thread
// walks the ops in plan order. Of the others only those are kept that nothing earlier implies: a stream that has waited
// for op d of stream T, or a host that has, knows all of T up to d.
// Not here: CUDA.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plan.hpp"

namespace ebb::replay {

struct IssueStep {
  std::uint32_t waits_begin = 0;  // into IssuePlan::waits
  std::uint32_t waits_count = 0;
  bool on_host = false;     // the host waits itself, and the op is its own work
  bool event_used = false;  // another stream, the host or a release's `after` depends on the op's end
};

struct IssuePlan {
  std::vector<IssueStep> steps;      // by op id
  std::vector<std::uint32_t> waits;  // op ids of device streams

  std::span<const std::uint32_t> waits_of(std::uint32_t op) const {
    return {waits.data() + steps[op].waits_begin, steps[op].waits_count};
  }
};

IssuePlan issue_plan(const Plan& plan);

/// Two plans with the same ops [0, ops), of which either may go on behind them: whatever one needs of those, both
/// record.
void share_prefix(IssuePlan& a, IssuePlan& b, std::uint32_t ops);

/// How many ops can be enqueued while nothing runs: up to the first on the host, and no more than `limit` commands.
/// `commands`: what each op enqueues itself; its events come on top. A device's queues hold about a thousand commands,
/// and a host that meets a full queue behind a closed gate waits for ever.
std::uint32_t ops_ahead(const IssuePlan& plan, std::span<const std::uint32_t> commands, std::uint32_t limit);

}  // namespace ebb::replay
