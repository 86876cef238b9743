#include "planner/compute_cuts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "models/errors.hpp"

namespace ebb {

ComputeCuts::ComputeCuts(PlanBuilder& plan, const ActivationLevels& levels, BufferId idle)
    : plan_(plan), levels_(levels), idle_(idle) {
  buffers_.reserve(levels.levels.size());
  for (std::size_t k = 0; k < levels.levels.size(); ++k)
    buffers_.push_back(plan_.buffer("activations", k, levels.levels[k].bytes, Phase::backward));
}

Ticks ComputeCuts::event(std::size_t passed) const {
  const std::size_t count = levels_.levels.size();
  if (passed < count) return levels_.levels[passed].rises;
  if (passed < 2 * count) return levels_.levels[2 * count - 1 - passed].falls;
  return {std::numeric_limits<std::int64_t>::max()};
}

Ticks ComputeCuts::longest_piece(Ticks begin, Ticks end, bool last) const {
  std::size_t passed = risen_ + fallen_;
  Ticks at = begin;
  Ticks best_begin = begin;
  Ticks best{-1};
  do {
    while (event(passed) <= at) ++passed;
    const Ticks until = std::min(event(passed), end);
    if (last ? until - at >= best : until - at > best) {
      best = until - at;
      best_begin = at;
    }
    at = until;
  } while (at < end);
  return best_begin;
}

/// All that happens up to `until`. No level falls before the top one has risen.
void ComputeCuts::pass_events(Ticks until, Phase phase) {
  const std::size_t count = levels_.levels.size();
  while (fallen_ < count && next_event() <= until) {
    if (risen_ < count) {
      const std::size_t level = risen_++;
      if (hooks_.before_rise) hooks_.before_rise(level);
      plan_.allocate(buffers_[level], phase);
    } else {
      const std::size_t level = count - 1 - fallen_++;
      plan_.release(buffers_[level], phase);
      if (hooks_.after_fall) hooks_.after_fall(level);
    }
  }
}

OpId ComputeCuts::compute(Op op, std::initializer_list<OpId> deps) {
  EBB_ASSERT(op.kind == OpKind::compute);
  const Ticks begin = now_;
  const Ticks end = begin + op.duration;
  const Ticks counting = longest_piece(begin, end, op.phase == Phase::backward);
  OpId last;
  do {
    pass_events(now_, op.phase);
    const Ticks until = std::min(next_event(), end);
    const bool is_first = !last.valid();
    const bool counts = now_ == counting;
    Op piece = op;
    piece.buffer = alive() > 0 ? buffers_[alive() - 1] : idle_;
    piece.duration = until - now_;
    if (!counts) {
      piece.states = 0;
      piece.range = {};
    }
    last = is_first ? plan_.add(piece, deps) : plan_.add(piece);
    now_ = until;
  } while (now_ < end);
  return last;
}

void ComputeCuts::finish() { pass_events({std::numeric_limits<std::int64_t>::max()}, Phase::backward); }

}  // namespace ebb
