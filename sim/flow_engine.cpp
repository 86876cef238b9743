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

/// No end in sight at this rate.
constexpr std::int64_t kTooLong = -1;

/// ceil(bytes / rate), or kTooLong. std::ceil is a library call on plain x86-64; the quotient fits an integer.
std::int64_t ticks_to_move(double bytes, double rate) {
  const double ticks = bytes / rate;
  if (!(ticks <= static_cast<double>(kLongestOp.value))) return kTooLong;
  const auto whole = static_cast<std::int64_t>(ticks);
  return whole + (static_cast<double>(whole) < ticks ? 1 : 0);
}

}  // namespace

void FlowEngine::reset(Fabric& fabric) {
  fabric_ = &fabric;
  now_ = {0};
  next_.assign(fabric.lanes(), kNever);
  lanes_.resize(fabric.lanes());
  for (Lane& lane : lanes_) {
    lane.state = State::waiting;
    lane.free = {0};
    lane.waits = false;
    lane.others.clear();
  }
  components_.resize(fabric.components());
  for (std::size_t c = 0; c < components_.size(); ++c) {
    components_[c].rates.reset(fabric, c);
    components_[c].flowing.clear();
    components_[c].changed = false;
    const auto lanes = fabric.lanes_of(c);
    for (std::uint32_t i = 0; i < lanes.size(); ++i) {
      lanes_[lanes[i]].component = static_cast<std::uint32_t>(c);
      lanes_[lanes[i]].index = i;
    }
  }
  changed_.clear();
}

/// The lane has a waiting task already.
void FlowEngine::enqueue_behind(std::size_t lane, const Task& task) {
  Lane& to = lanes_[lane];
  const bool overtakes = later(to.first(), task);
  to.others.push_back(overtakes ? to.first() : task);
  std::push_heap(to.others.begin(), to.others.end(), later);  // keeps the least `later` in front
  if (overtakes) to.first() = task;
  if (to.state == State::waiting) plan_next(lane);
}

/// The component's flows change at this tick.
void FlowEngine::touch(Component& component, std::uint32_t number) {
  if (component.changed) return;
  component.changed = true;
  changed_.push_back(number);
}

void FlowEngine::begin_flow(std::size_t lane) {
  Lane& by = lanes_[lane];
  by.state = State::flowing;
  next_[lane] = kNever;  // until share() knows its rate
  by.start = std::max(by.free, by.first().ready);
  by.current ^= 1U;
  by.waits = !by.others.empty();
  if (by.waits) {
    std::pop_heap(by.others.begin(), by.others.end(), later);
    by.first() = by.others.back();
    by.others.pop_back();
  }
  if (by.now().bytes == 0) {  // ends at this very tick, and shares nothing
    next_[lane] = end_at(now_.value);
    return;
  }
  Component& component = components_[by.component];
  by.flowing = static_cast<std::uint32_t>(component.flowing.size());
  const bool kernel = fabric_->is_kernel_lane(lane);
  component.flowing.push_back(
      {static_cast<std::uint32_t>(lane), by.index, kernel ? by.now().flow : kNoFlow, now_.value, by.now().bytes, 0.0});
  if (!kernel) component.rates.set(by.index, by.now().flow);
  touch(component, by.component);
}

/// Its bytes have flowed.
void FlowEngine::end_flow(std::size_t lane, std::vector<Ended>& ended) {
  Lane& by = lanes_[lane];
  if (by.now().bytes > 0) {
    Component& component = components_[by.component];
    component.flowing[by.flowing] = component.flowing.back();
    lanes_[component.flowing.back().lane].flowing = by.flowing;
    component.flowing.pop_back();
    if (!fabric_->is_kernel_lane(lane)) {  // a kernel holds nothing back
      component.rates.set(by.index, kNoFlow);
      touch(component, by.component);
    }
  }
  if (by.now().least_end <= now_) return retire(lane, ended);
  by.state = State::lingering;
  next_[lane] = end_at(by.now().least_end.value);
}

void FlowEngine::retire(std::size_t lane, std::vector<Ended>& ended) {
  Lane& by = lanes_[lane];
  ended.push_back({static_cast<std::uint32_t>(lane), by.now().rank, by.now().op, by.start, now_});
  by.state = State::waiting;
  by.free = now_;
  plan_next(lane);
}

/// The component's flows have changed: charges what has flowed where the rate changes, and sets new rates and ends.
void FlowEngine::share(Component& component) {
  component.changed = false;
  if (component.flowing.empty()) return;
  const std::span<const double> rates = component.rates.rates();
  for (Flowing& flow : component.flowing) {
    const double rate =
        flow.kernel == kNoFlow ? rates[flow.index] : fabric_->kernel_rate(flow.kernel, flow.lane / 3, rates);
    if (rate == flow.rate) continue;
    flow.left = std::max(0.0, flow.left - flow.rate * static_cast<double>(now_.value - flow.since));
    flow.rate = rate;
    flow.since = now_.value;
    const std::int64_t ticks = ticks_to_move(flow.left, rate);
    next_[flow.lane] = ticks == kTooLong ? kNever : end_at(now_.value + ticks);  // another may end and free it
  }
}

FlowEngine::Soonest FlowEngine::soonest() const {
  Soonest first{0, next_[0], false};
  for (std::size_t i = 1; i < next_.size(); ++i) {
    first.tied = next_[i] == first.event || (first.tied && next_[i] > first.event);
    if (next_[i] >= first.event) continue;
    first.lane = i;
    first.event = next_[i];
  }
  return first;
}

// Ends sort before what begins at the same tick: a task that ends may make another ready that comes before one whose
// bytes were to flow at that very tick. So ends are told before anything more begins.
bool FlowEngine::advance(std::vector<Ended>& ended) {
  ended.clear();
  for (Soonest next = soonest(); next.event != kNever; next = soonest()) {
    const std::int64_t event = next.event;
    now_ = {event >> 1};
    happen(next.lane, ended);
    while (next.tied && (next = soonest()).event == event) happen(next.lane, ended);
    for (const std::uint32_t component : changed_) share(components_[component]);
    changed_.clear();
    if (!ended.empty()) return true;
  }
  for (const Component& component : components_)
    if (!component.flowing.empty()) throw too_long();
  return false;
}

/// The lane's next event, at this tick.
void FlowEngine::happen(std::size_t lane, std::vector<Ended>& ended) {
  if (lanes_[lane].state == State::waiting)
    begin_flow(lane);
  else if (lanes_[lane].state == State::flowing)
    end_flow(lane, ended);
  else
    retire(lane, ended);
}

}  // namespace ebb::sim
