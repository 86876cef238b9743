#include "sim/flow_engine.hpp"

#include <algorithm>
#include <tuple>

#include "models/errors.hpp"
#include "sim/op_cost.hpp"

namespace ebb::sim {
namespace {

bool later(const FlowEngine::Task& a, const FlowEngine::Task& b) {
  return std::tie(a.ready, a.rank, a.op) > std::tie(b.ready, b.rank, b.op);
}

/// ceil(bytes / rate). std::ceil is a library call on plain x86-64; the quotient fits an integer.
std::int64_t ticks_to_move(double bytes, double rate) {
  if (bytes == 0) return 0;
  const double ticks = bytes / rate;
  EBB_ASSERT(ticks >= 0);
  if (ticks > static_cast<double>(kLongestOp.value)) throw too_long();
  const auto whole = static_cast<std::int64_t>(ticks);
  return whole + (static_cast<double>(whole) < ticks ? 1 : 0);
}

}  // namespace

void FlowEngine::reset(Fabric& fabric) {
  now_ = {0};
  next_.assign(fabric.lanes(), kNever);
  lanes_.resize(fabric.lanes());
  for (Lane& lane : lanes_) {
    lane.state = State::waiting;
    lane.free = {0};
    lane.waits = false;
    lane.others.clear();
  }
  memory_.resize(fabric.components());
  members_.resize(fabric.components());
  for (std::size_t component = 0; component < fabric.components(); ++component) {
    memory_[component].reset(fabric, component);
    const auto lanes = fabric.lanes_of(component);
    members_[component].assign(lanes.begin(), lanes.end());
    for (std::uint32_t i = 0; i < lanes.size(); ++i) {
      lanes_[lanes[i]].component = static_cast<std::uint32_t>(component);
      lanes_[lanes[i]].index = i;
    }
  }
  changed_.clear();
  is_changed_.assign(fabric.components(), 0);
}

void FlowEngine::enqueue(std::size_t lane, const Task& task) {
  Lane& to = lanes_[lane];
  if (!to.waits) {
    to.waits = true;
    to.first = task;
  } else {
    const bool overtakes = later(to.first, task);
    to.others.push_back(overtakes ? to.first : task);
    std::push_heap(to.others.begin(), to.others.end(), later);  // keeps the least `later` in front
    if (overtakes) to.first = task;
  }
  if (to.state == State::waiting) plan_next(lane);
}

/// When the first waiting task's bytes will flow, unless another comes before it.
void FlowEngine::plan_next(std::size_t lane) {
  const Lane& by = lanes_[lane];
  next_[lane] = by.waits ? (std::max(by.free, by.first.ready) + by.first.latency).value : kNever;
}

/// The lane carries `flow` from this tick on.
void FlowEngine::touch(const Lane& lane, FlowId flow) {
  memory_[lane.component].set(lane.index, flow);
  if (is_changed_[lane.component] != 0) return;
  is_changed_[lane.component] = 1;
  changed_.push_back(lane.component);
}

void FlowEngine::begin_flow(std::size_t lane) {
  Lane& by = lanes_[lane];
  by.state = State::flowing;
  by.start = std::max(by.free, by.first.ready);
  by.now = by.first;
  by.left = by.now.bytes;
  by.rate = 0;
  by.since = now_;
  by.waits = !by.others.empty();
  if (by.waits) {
    std::pop_heap(by.others.begin(), by.others.end(), later);
    by.first = by.others.back();
    by.others.pop_back();
  }
  touch(by, by.now.flow);
}

/// Its bytes have flowed.
void FlowEngine::end_flow(std::size_t lane, std::vector<Ended>& ended) {
  Lane& by = lanes_[lane];
  touch(by, kNoFlow);
  if (by.now.least_end <= now_) return retire(lane, ended);
  by.state = State::lingering;
  next_[lane] = by.now.least_end.value;
}

void FlowEngine::retire(std::size_t lane, std::vector<Ended>& ended) {
  Lane& by = lanes_[lane];
  ended.push_back({static_cast<std::uint32_t>(lane), by.now.rank, by.now.op, by.start, now_});
  by.state = State::waiting;
  by.free = now_;
  plan_next(lane);
}

/// The component's flows have changed: charges what has flowed where the rate changes, and sets new rates and ends.
void FlowEngine::share(std::size_t component) {
  const std::span<const double> rates = memory_[component].rates();
  const std::vector<std::uint32_t>& members = members_[component];
  for (std::size_t i = 0; i < members.size(); ++i) {
    Lane& lane = lanes_[members[i]];
    if (rates[i] == lane.rate || lane.state != State::flowing) continue;
    lane.left = std::max(0.0, lane.left - lane.rate * static_cast<double>((now_ - lane.since).value));
    lane.rate = rates[i];
    lane.since = now_;
    next_[members[i]] = now_.value + ticks_to_move(lane.left, lane.rate);
  }
}

// A task that begins and ends at one tick may make another ready that comes before one whose bytes were to flow at that
// very tick: ends are told before anything more begins.
bool FlowEngine::advance(std::vector<Ended>& ended) {
  ended.clear();
  for (;;) {
    std::int64_t soonest = kNever;
    for (const std::int64_t next : next_) soonest = std::min(soonest, next);
    if (soonest == kNever) return false;
    now_ = {soonest};
    bool only_begins = true;
    for (std::size_t lane = 0; lane < next_.size(); ++lane) {
      if (next_[lane] != soonest || lanes_[lane].state == State::waiting) continue;
      only_begins = false;
      if (lanes_[lane].state == State::flowing)
        end_flow(lane, ended);
      else
        retire(lane, ended);
    }
    if (only_begins) {
      for (std::size_t lane = 0; lane < next_.size(); ++lane)
        if (next_[lane] == soonest) begin_flow(lane);
    }
    for (const std::uint32_t component : changed_) {
      is_changed_[component] = 0;
      share(component);
    }
    changed_.clear();
    if (!ended.empty()) return true;
  }
}

}  // namespace ebb::sim
