#include "replay/issue_plan.hpp"

#include <algorithm>

#include "models/errors.hpp"

namespace ebb::replay {

namespace {

/// Of each stream (row) the end of which op of each stream (column) it knows of: 1 + op id, 0 for none.
class Known {
 public:
  explicit Known(std::size_t streams) : streams_(streams), ops_(streams * streams, 0) {}

  bool has(std::uint32_t stream, std::uint32_t of, std::uint32_t op) const { return at(stream, of) > op; }
  void learn(std::uint32_t stream, std::uint32_t of, std::uint32_t op) {
    if (at(stream, of) <= op) ops_[stream * streams_ + of] = op + 1;
  }
  /// Whatever is issued from now on comes after what the host knows.
  void spread_from(std::uint32_t host) {
    for (std::size_t s = 0; s < streams_; ++s) {
      for (std::size_t of = 0; of < streams_; ++of) {
        ops_[s * streams_ + of] = std::max(ops_[s * streams_ + of], ops_[host * streams_ + of]);
      }
    }
  }

 private:
  std::uint32_t at(std::size_t stream, std::size_t of) const { return ops_[stream * streams_ + of]; }
  std::size_t streams_;
  std::vector<std::uint32_t> ops_;
};

}  // namespace

IssuePlan issue_plan(const Plan& plan) {
  IssuePlan result;
  result.steps.resize(plan.ops.size());
  Known known(plan.streams.size());
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    IssueStep& step = result.steps[i];
    step.on_host = plan.streams[op.stream.index].kind == StreamKind::host;
    step.waits_begin = static_cast<std::uint32_t>(result.waits.size());
    for (const OpId dep : plan.deps_of(op)) {
      EBB_ASSERT(dep.index < i);
      const StreamId of = plan.ops[dep.index].stream;
      const bool on_host = plan.streams[of.index].kind == StreamKind::host;
      if (of == op.stream || on_host || known.has(op.stream.index, of.index, dep.index)) continue;
      known.learn(op.stream.index, of.index, dep.index);
      result.waits.push_back(dep.index);
      result.steps[dep.index].event_used = true;
    }
    step.waits_count = static_cast<std::uint32_t>(result.waits.size()) - step.waits_begin;
    if (step.on_host) known.spread_from(op.stream.index);
    if (op.after.valid()) {
      EBB_ASSERT(op.after.index < plan.ops.size());
      result.steps[op.after.index].event_used = true;
    }
  }
  return result;
}

void share_prefix(IssuePlan& a, IssuePlan& b, std::uint32_t ops) {
  EBB_ASSERT(ops <= a.steps.size() && ops <= b.steps.size());
  for (std::uint32_t op = 0; op < ops; ++op) {
    const bool used = a.steps[op].event_used || b.steps[op].event_used;
    a.steps[op].event_used = b.steps[op].event_used = used;
  }
}

std::uint32_t ops_ahead(const IssuePlan& plan, std::span<const std::uint32_t> commands, std::uint32_t limit) {
  EBB_ASSERT(commands.size() == plan.steps.size());
  constexpr std::uint32_t kTimeStamps = 2;
  std::uint64_t enqueued = 0;
  std::uint32_t ops = 0;
  while (ops < plan.steps.size() && !plan.steps[ops].on_host) {
    enqueued += std::uint64_t{commands[ops]} + plan.steps[ops].waits_count + kTimeStamps;
    if (enqueued > limit) break;
    ++ops;
  }
  return ops;
}

}  // namespace ebb::replay
