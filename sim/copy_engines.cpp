#include "sim/copy_engines.hpp"

#include <algorithm>

#include "models/errors.hpp"
#include "sim/op_cost.hpp"

namespace ebb::sim {
namespace {

bool later(const CopyEngines::Copy& a, const CopyEngines::Copy& b) {
  return a.ready != b.ready ? a.ready > b.ready : a.op > b.op;
}

/// ceil(bytes / rate). std::ceil is a library call on plain x86-64; the quotient fits an integer.
Ticks ticks_to_move(double bytes, double rate) {
  const double ticks = bytes / rate;
  EBB_ASSERT(ticks >= 0);
  if (ticks > static_cast<double>(kLongestOp.value)) throw too_long();
  const auto whole = static_cast<std::int64_t>(ticks);
  return {whole + (static_cast<double>(whole) < ticks ? 1 : 0)};
}

}  // namespace

void CopyEngines::reset(const CopyRates& rates) {
  rates_ = rates;
  flowing_ = 0;
  now_ = {0};
  for (Engine& engine : engines_) {
    engine.state = State::idle;
    engine.next = kNever;
    engine.waits = false;
    engine.others.clear();
  }
}

void CopyEngines::enqueue(Direction direction, const Copy& copy) {
  Engine& engine = engines_[static_cast<unsigned>(direction)];
  if (!engine.waits) {
    engine.waits = true;
    engine.first = copy;
  } else {
    const bool overtakes = later(engine.first, copy);
    engine.others.push_back(overtakes ? engine.first : copy);
    std::push_heap(engine.others.begin(), engine.others.end(), later);  // keeps the least `later` in front
    if (overtakes) engine.first = copy;
  }
  if (engine.state == State::idle) engine.next = std::max(now_, engine.first.ready);
}

void CopyEngines::take(Engine& engine) {
  engine.state = State::starting;
  engine.start = now_;
  engine.next = now_ + engine.first.latency;
  engine.left = engine.first.bytes;
  engine.rate = 0;
  engine.op = engine.first.op;
  engine.waits = !engine.others.empty();
  if (!engine.waits) return;
  std::pop_heap(engine.others.begin(), engine.others.end(), later);
  engine.first = engine.others.back();
  engine.others.pop_back();
}

void CopyEngines::retire(Engine& engine, Ended& ended) {
  ended = {.op = engine.op, .start = engine.start, .end = now_};
  engine.state = State::idle;
  engine.next = engine.waits ? std::max(now_, engine.first.ready) : kNever;
}

/// The set of flowing copies is `flowing` from now on: charges what has flowed, and sets new rates and ends.
void CopyEngines::share(unsigned flowing) {
  flowing_ = flowing;
  for (unsigned d = 0; d < kDirections; ++d) {
    Engine& engine = engines_[d];
    const double rate = rates_.bytes_per_tick[flowing][d];
    if ((flowing >> d & 1U) == 0 || rate == engine.rate) continue;
    engine.left = std::max(0.0, engine.left - engine.rate * static_cast<double>((now_ - engine.since).value));
    engine.rate = rate;
    engine.since = now_;
    engine.next = now_ + ticks_to_move(engine.left, rate);
  }
}

unsigned CopyEngines::advance(std::array<Ended, kDirections>& ended) {
  for (;;) {
    now_ = std::min(engines_[0].next, engines_[1].next);
    if (now_ == kNever) return 0;
    unsigned count = 0;
    unsigned flowing = flowing_;
    bool only_takes = true;
    for (unsigned d = 0; d < kDirections; ++d) {
      Engine& engine = engines_[d];
      if (engine.next != now_ || engine.state == State::idle) continue;
      only_takes = false;
      if (engine.state == State::starting) {
        engine.state = State::flowing;
        flowing |= 1U << d;
      } else {
        retire(engine, ended[count++]);
        flowing &= ~(1U << d);
      }
    }
    if (flowing != flowing_) share(flowing);
    if (count > 0) return count;
    if (!only_takes) continue;  // a copy of no bytes may end at this very tick
    for (Engine& engine : engines_) {
      if (engine.next == now_) take(engine);
    }
  }
}

}  // namespace ebb::sim
