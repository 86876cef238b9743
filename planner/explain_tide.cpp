// What `tidal` would reach for the job, how far that is from the fluid bound, and what limits it. The bound is of the
// rank whose own bound is longest; the step is simulated.
#include <algorithm>

#include "models/errors.hpp"
#include "planner/candidates.hpp"
#include "planner/constraints.hpp"
#include "planner/explain_parts.hpp"
#include "planner/tidal_pieces.hpp"

namespace ebb {

namespace {

/// The fastest of the sizes of pieces that the search tries; the candidate itself where it is tidal.
std::optional<Answer> best_tidal(Evaluator& evaluator, const Answer& answer) {
  if (answer.candidate.policy == Policy::tidal) return answer;
  try {
    check_policy(evaluator.job(), Policy::tidal);
  } catch (const InputError&) {
    return std::nullopt;  // nothing that this job can run
  }
  Job job = evaluator.job();
  job.offload = {};
  job.offload.policy = Policy::tidal;
  std::optional<Answer> best;
  for (const Candidate& candidate : candidates_of(job, evaluator.deciding_shards())) {
    if (candidate.policy != Policy::tidal) continue;
    Answer one = evaluator.answer(candidate);
    if (!best || one.step < best->step) best = std::move(one);
  }
  return best;
}

Ticks length(const std::vector<TideRoom>& curve) { return curve.empty() ? Ticks{0} : curve.back().until; }

/// Of what must move, the direction of which more is left to the step; and the first of these that stands in its way.
reports::Tide::Limit limit_of(const TideProblem& p, const TideBound& bound) {
  using Limit = reports::Tide::Limit;
  const Bytes moving = p.piece * p.pieces - bound.kept;
  if (!p.may_stay) return Limit::second_pass;
  if (bound.in >= moving && bound.out >= moving) return Limit::nothing;
  const bool in = bound.in <= bound.out;
  const Bytes hidden = in ? bound.in : bound.out;
  const BytesPerSecond rate = std::min(in ? p.h2d : p.d2h, p.both);
  const double window = rate.value * to_seconds(length(in ? p.fall : p.rise)).value;
  if (static_cast<double>(hidden.value) >= window * 0.999) return Limit::link;
  return hidden >= p.step_room - bound.kept ? Limit::cap : Limit::valley;
}

}  // namespace

std::optional<reports::Tide> tide_of(Evaluator& evaluator, const Answer& answer) {
  const std::optional<Answer> tidal = best_tidal(evaluator, answer);
  if (!tidal) return std::nullopt;
  std::optional<TidalRoom> longest;
  TideBound bound;
  for (const RankModel& rank : evaluator.ranks()) {
    if (rank.owned.value == 0) continue;
    TidalRoom room = tidal_room(rank, tidal->candidate);
    const TideBound of_rank = fluid_bound(room.problem);
    if (longest && of_rank.step <= bound.step) continue;
    bound = of_rank;
    longest = std::move(room);
  }
  if (!longest) return std::nullopt;
  const TideProblem& p = longest->problem;
  const Answer resident = evaluator.answer(Candidate{});
  reports::Tide tide;
  tide.piece = tidal->candidate.chunk_numel;
  tide.step = tidal->step;
  tide.peak = tidal->device_peak;
  tide.exposed = {std::max(0.0, (tidal->step - (resident.step - resident.optimizer)).value)};
  tide.bound = bound.step;
  tide.even_bound = bound.shared;
  tide.state = p.piece * p.pieces;
  tide.kept = bound.kept;
  tide.in = bound.in;
  tide.out = bound.out;
  tide.room = p.step_room;
  tide.cap = longest->cap;
  tide.limit = limit_of(p, bound);
  return tide;
}

}  // namespace ebb
