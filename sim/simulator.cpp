#include "sim/simulator.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "models/errors.hpp"
#include "sim/op_cost.hpp"

namespace ebb::sim {
namespace {

bool is_copy(const Op& op) { return op.kind == OpKind::copy_h2d || op.kind == OpKind::copy_d2h; }

/// Half of what Ticks can count: an op of at most kLongestOp that starts before it ends without overflow.
constexpr Ticks kHorizon{std::int64_t{1} << 62};

}  // namespace

void Simulator::run(const Plan& plan, const Cluster& cluster, const Sharing& sharing, Timeline& out) {
  plan_ = &plan;
  out_ = &out;
  settled_ = 0;
  out.source = TimelineSource::predicted;
  out.start.resize(plan.ops.size());
  out.end.assign(plan.ops.size(), kNotEnded);
  cost_ = OpCost(cluster, sharing);
  const bool copies = thread_streams(plan);
  engines_.reset(copies ? copy_rates(cluster.host_link, sharing) : CopyRates{});

  for (std::uint32_t stream = 0; stream < cursors_.size(); ++stream) awake_.push_back(stream);
  wake_all();
  std::array<CopyEngines::Ended, kDirections> ended;
  while (const unsigned count = engines_.advance(ended)) {
    for (unsigned i = 0; i < count; ++i) {
      const std::uint32_t stream = plan.ops[ended[i].op].stream.index;
      settle(stream, ended[i].start, ended[i].end);
      awake_.push_back(stream);
    }
    wake_all();
  }
  EBB_ASSERT(settled_ == plan.ops.size());
}

/// Links each stream's ops in program order and puts its cursor on the first. Whether there is any copy.
bool Simulator::thread_streams(const Plan& plan) {
  EBB_ASSERT(plan.ops.size() < kNone);
  cursors_.assign(plan.streams.size(), Cursor{});
  next_.resize(plan.ops.size());
  sleeper_.assign(plan.ops.size(), kNone);
  awake_.clear();
  bool copies = false;
  // Backwards, so that the cursor is the link to the op seen last and ends on the first.
  for (auto i = static_cast<std::uint32_t>(plan.ops.size()); i-- > 0;) {
    const Op& op = plan.ops[i];
    EBB_ASSERT(op.stream.index < cursors_.size());
    copies |= is_copy(op);
    next_[i] = std::exchange(cursors_[op.stream.index].op, i);
  }
  return copies;
}

void Simulator::wake_all() {
  while (!awake_.empty()) {
    const std::uint32_t stream = awake_.back();
    awake_.pop_back();
    run_stream(stream);
  }
}

/// Settles the stream's ops up to the first that must wait for a copy: an op it depends on, or itself.
void Simulator::run_stream(std::uint32_t stream) {
  Cursor& cursor = cursors_[stream];
  while (cursor.op != kNone) {
    const Op& op = plan_->ops[cursor.op];
    if (wait_for_deps(stream, op)) return;
    const Ticks duration = cost_(op);
    if (is_copy(op)) {
      EBB_ASSERT(op.bytes.value >= 0);
      engines_.enqueue(
          op.kind == OpKind::copy_h2d ? Direction::h2d : Direction::d2h,
          {.ready = cursor.ready, .latency = duration, .bytes = static_cast<double>(op.bytes.value), .op = cursor.op});
      return;
    }
    settle(stream, cursor.ready, cursor.ready + duration);
  }
}

/// True when a dependency of the stream's current op has not ended; the stream then sleeps on it.
bool Simulator::wait_for_deps(std::uint32_t stream, const Op& op) {
  Cursor& cursor = cursors_[stream];
  EBB_ASSERT(std::size_t{op.deps_begin} + op.deps_count <= plan_->deps.size());
  for (; cursor.deps_seen < op.deps_count; ++cursor.deps_seen) {
    const std::uint32_t dep = plan_->deps[op.deps_begin + cursor.deps_seen].index;
    EBB_ASSERT(dep < cursor.op);
    const Ticks end = out_->end[dep];
    if (end == kNotEnded) {
      cursor.next_sleeper = std::exchange(sleeper_[dep], stream);
      return true;
    }
    cursor.ready = std::max(cursor.ready, end);
  }
  return false;
}

/// The stream's current op ran from `start` to `end`: records it, wakes who sleeps on it, and moves the cursor on.
void Simulator::settle(std::uint32_t stream, Ticks start, Ticks end) {
  if (end >= kHorizon) throw too_long();
  Cursor& cursor = cursors_[stream];
  out_->start[cursor.op] = start;
  out_->end[cursor.op] = end;
  ++settled_;
  for (std::uint32_t s = sleeper_[cursor.op]; s != kNone; s = cursors_[s].next_sleeper) awake_.push_back(s);
  cursor.op = next_[cursor.op];
  cursor.deps_seen = 0;
  cursor.ready = end;
}

}  // namespace ebb::sim
