#include "sim/rank_run.hpp"

#include <algorithm>
#include <utility>

#include "models/errors.hpp"

namespace ebb::sim {
namespace {

/// A quarter of what Ticks can count: an op of at most kLongestOp that starts before it ends without overflow, also
/// where a tick is kept times two (FlowEngine).
constexpr Ticks kHorizon{std::int64_t{1} << 61};

}  // namespace

void RankRun::start(const Plan& plan, const OpCost& cost, Timeline& out) {
  EBB_ASSERT(plan.ops.size() < kNone);
  plan_ = &plan;
  cost_ = &cost;
  settled_ = 0;
  host_op_ = 0;
  host_now_ = {0};
  out.source = TimelineSource::predicted;
  out.start.resize(plan.ops.size());
  out.end.resize(plan.ops.size());
  ops_ = plan.ops.data();
  deps_ = plan.deps.data();
  start_ = out.start.data();
  end_ = out.end.data();
  count_ = static_cast<std::uint32_t>(plan.ops.size());
  cursors_.assign(plan.streams.size() + 1, Cursor{});
  for (std::size_t s = 0; s < plan.streams.size(); ++s) cursors_[s].host = plan.streams[s].kind == StreamKind::host;
  next_.resize(plan.ops.size());
  sleeper_.resize(plan.ops.size());
  awake_.clear();
  awake_.push_back(static_cast<std::uint32_t>(plan.streams.size()));
}

bool RankRun::next(Ready& ready) {
  const auto host = static_cast<std::uint32_t>(plan_->streams.size());
  while (!awake_.empty()) {
    const std::uint32_t stream = awake_.back();
    awake_.pop_back();
    if (stream == host) {
      run_host();
    } else if (run_stream(stream, ready)) {
      return true;
    }
  }
  return false;
}

/// Walks on in program order: issues, and runs host ops, up to one that waits for an op that has not ended.
void RankRun::run_host() {
  const auto host = static_cast<std::uint32_t>(plan_->streams.size());
  Cursor& cursor = cursors_[host];
  for (; host_op_ < count_; ++host_op_) {
    const Op& op = ops_[host_op_];
    EBB_ASSERT(op.stream.index < host);
    const std::uint32_t events = events_of(host_op_, op);
    if (!is_host(op)) {
      issue(host_op_, op, events);
      continue;
    }
    cursor.ready = std::max(cursor.ready, host_now_);
    if (cursor.op != host_op_) {  // not one that it slept on
      cursor.op = host_op_;
      end_[host_op_] = as_issued(host_now_);
      sleeper_[host_op_] = kNone;
    }
    if (wait_for_deps(host, op)) return;
    const Ticks begin = cursor.ready;
    host_now_ = begin + (*cost_)(op);
    record(host_op_, begin, host_now_);
    cursor.deps_seen = 0;
    cursor.ready = host_now_;
  }
}

/// How many ops of other device streams it waits for. Also what the loops below rely on, once an op: that dependencies
/// are earlier ops.
std::uint32_t RankRun::events_of(std::uint32_t index, const Op& op) const {
  EBB_ASSERT(std::size_t{op.deps_begin} + op.deps_count <= plan_->deps.size());
  std::uint32_t events = 0;
  for (std::uint32_t i = op.deps_begin; i < op.deps_begin + op.deps_count; ++i) {
    EBB_ASSERT(deps_[i].index < index);
    const Op& on = ops_[deps_[i].index];
    events += on.stream == op.stream || is_host(on) ? 0 : 1;
  }
  return events;
}

void RankRun::issue(std::uint32_t index, const Op& op, std::uint32_t events) {
  const Issue calls = cost_->issue(op, events);
  start_[index] = host_now_ + calls.first;
  host_now_ += calls.all;
  if (host_now_ >= kHorizon) throw too_long();
  end_[index] = as_issued(host_now_);
  Cursor& cursor = cursors_[op.stream.index];
  next_[index] = sleeper_[index] = kNone;
  if (cursor.op == kNone) {
    cursor.op = index;
    awake_.push_back(op.stream.index);
  } else {
    next_[cursor.tail] = index;
  }
  cursor.tail = index;
}

/// Settles the stream's ops up to the first that must wait, or that is the caller's to run (true).
bool RankRun::run_stream(std::uint32_t stream, Ready& ready) {
  Cursor& cursor = cursors_[stream];
  while (cursor.op != kNone && !cursor.running) {
    const std::uint32_t index = cursor.op;
    const Op& op = ops_[index];
    if (wait_for_deps(stream, op)) return false;
    const Ticks begin = std::max(cursor.ready, start_[index]);
    const Ticks last_call = last_call_of(end_[index]);
    if (cost_->shares(op)) {
      cursor.running = true;
      ready = {index, begin, last_call};
      return true;
    }
    settle(index, begin, std::max(begin + (*cost_)(op), last_call));
  }
  return false;
}

/// True when a dependency of `op` has not ended; the stream then sleeps on it.
bool RankRun::wait_for_deps(std::uint32_t stream, const Op& op) {
  Cursor& cursor = cursors_[stream];
  for (; cursor.deps_seen < op.deps_count; ++cursor.deps_seen) {
    const std::uint32_t dep = deps_[op.deps_begin + cursor.deps_seen].index;
    const Ticks end = end_[dep];
    if (!ended(end)) {
      cursor.next_sleeper = std::exchange(sleeper_[dep], stream);
      return true;
    }
    cursor.ready = std::max(cursor.ready, end);
  }
  return false;
}

void RankRun::record(std::uint32_t op, Ticks start, Ticks end) {
  if (end >= kHorizon) throw too_long();
  start_[op] = start;
  end_[op] = end;
  ++settled_;
  for (std::uint32_t s = sleeper_[op]; s != kNone; s = cursors_[s].next_sleeper) awake_.push_back(s);
}

void RankRun::settle(std::uint32_t op, Ticks start, Ticks end) {
  const std::uint32_t stream = ops_[op].stream.index;
  Cursor& cursor = cursors_[stream];
  record(op, start, end);
  if (cursor.running) {
    cursor.running = false;
    awake_.push_back(stream);
  }
  cursor.op = next_[op];
  cursor.deps_seen = 0;
  cursor.ready = end;
}

}  // namespace ebb::sim
