// ComputeCuts: writes the stand-ins for forward and backward in pieces, cut where activation levels rise and fall.
//
// Of the pieces of one stand-in exactly one reads parameters or adds gradients: the longest, so that a replay, which
// does both for all elements at once, keeps to the plan's times; of equal ones forward's first and backward's last. The
// others are fillers: states = 0 and an empty range. They take their time and overwrite their activations, and no
// number depends on them. So a plan's numbers are those of the uncut frame, whatever the levels. What precedes a
// stand-in precedes its first piece, and what follows it its last.
// Not here: what stand-ins there are and what surrounds them (step_frame.hpp), the levels (activation_levels.hpp).
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <vector>

#include "planner/activation_levels.hpp"
#include "planner/plan_builder.hpp"

namespace ebb {

/// Called right before the allocation of a level is written, and right after its release.
struct TideHooks {
  std::function<void(std::size_t level)> before_rise;
  std::function<void(std::size_t level)> after_fall;
};

class ComputeCuts {
 public:
  /// Makes a buffer "activations `k`" for every level. `idle` is alive throughout: what pieces without any level
  /// (waits for other stages of the pipeline) are said to use. `levels` outlives the cuts.
  ComputeCuts(PlanBuilder& plan, const ActivationLevels& levels, BufferId idle);
  void use(TideHooks hooks) { hooks_ = std::move(hooks); }
  /// `op` in pieces, without its buffer. The first waits for `deps`. Returns the last.
  OpId compute(Op op, std::initializer_list<OpId> deps);
  /// What is still to rise or fall when all compute has been written.
  void finish();

 private:
  std::size_t alive() const { return risen_ - fallen_; }
  /// After `passed` events.
  Ticks event(std::size_t passed) const;
  Ticks next_event() const { return event(risen_ + fallen_); }
  /// Where the longest piece of a stand-in begins, of several the last or the first.
  Ticks longest_piece(Ticks begin, Ticks end, bool last) const;
  void pass_events(Ticks until, Phase phase);

  PlanBuilder& plan_;
  const ActivationLevels& levels_;
  BufferId idle_;
  TideHooks hooks_;
  std::vector<BufferId> buffers_;  // by level
  std::size_t risen_ = 0;          // how many levels have risen
  std::size_t fallen_ = 0;         // ... and fallen, from the top
  Ticks now_{0};
};

}  // namespace ebb
