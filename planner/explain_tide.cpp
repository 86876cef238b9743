// What `tidal` would reach for the job, how far that is from the fluid bound, and what limits it.
//
// All figures are of one rank, the slowest under tidal. What is exposed is its step less its step under resident
// without that one's step phase; phase by phase, so that what is no transfer can be told from what is. Of the bound
// that is what it claims: the rank does what resident does outside the step phase and, beside it, moves its state.
//
// So that no schedule passes the bound, nothing may be counted against it that a schedule need not have:
//   time   Levels of activations are counted in compute time, and so are the schedule's figures (what comes in, what
//          leaves, what limits it); a step also waits for gathers, for reductions and for other ranks. The bound's
//          fluid gets that time, too: what the phases before backward have of it before the peak, what those behind it
//          have on both sides of the peak, because it may lie on either.
//   link   Where the ranks of a host own different amounts, those with more have the link to themselves once the others
//          are done. So of each rank only as much state counts as the one with least has: then they are alike, and
//          since all of the fluid's conditions are convex, the mean of their schedules is one at an even share of the
//          host's rates. Where they differ in more (several stages), a rank gets the rates of one that is alone.
//   state  Elements, not buffers.
//   Adam   What never moves is stepped by the usual kernel and cast (28 and 6 bytes an element over fp32 state), what
//          moves in one pass (30), quantised parameters without either: the cheapest, and no kernel's floor.
#include <algorithm>

#include "models/errors.hpp"
#include "planner/candidates.hpp"
#include "planner/constraints.hpp"
#include "planner/explain_parts.hpp"
#include "planner/optimizer_traffic.hpp"
#include "planner/tidal_pieces.hpp"
#include "sim/copy_rates.hpp"

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

/// By phase: how much longer it takes than under resident; the step phase as a whole.
std::vector<reports::TidePart> exposed_parts(const StepSummary& tidal, const StepSummary& resident) {
  std::vector<std::pair<Phase, Ticks>> parts;
  const auto add = [&](Phase phase, Ticks time) {
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const auto& part) { return part.first == phase; });
    if (same == parts.end())
      parts.emplace_back(phase, time);
    else
      same->second += time;
  };
  for (const PhaseSummary& phase : tidal.phases) add(phase.phase, phase.duration);
  for (const PhaseSummary& phase : resident.phases)
    if (phase.phase != Phase::step) add(phase.phase, Ticks{-phase.duration.value});
  std::vector<reports::TidePart> result;
  for (const auto& [phase, time] : parts)
    if (time != Ticks{0}) result.push_back({std::string(name_of(phase)), to_seconds(time)});
  return result;
}

/// Of the ranks that share its host with it; none where they are of several stages.
Numel least_owned(const Evaluator& evaluator, std::size_t rank) {
  const std::vector<RankModel>& ranks = evaluator.ranks();
  Numel least = ranks[rank].owned;
  for (const std::size_t other : evaluator.hosts().hosts()[evaluator.hosts().host_of(rank)].models) {
    if (!same_stage(ranks[other], ranks[rank])) return Numel{0};
    least = std::min(least, ranks[other].owned);
  }
  return least;
}

/// Beside what levels are counted in.
struct Spare {
  Ticks rise{0};
  Ticks fall{0};
};

Spare spare_of(const StepSummary& resident, const ActivationLevels& levels, const TideProblem& p) {
  Ticks before{0};  // backward
  Ticks behind{0};
  for (const PhaseSummary& phase : resident.phases) {
    if (phase.phase == Phase::step) continue;
    (phase.phase == Phase::gather || phase.phase == Phase::forward ? before : behind) += phase.duration;
  }
  const Ticks all = length(p.rise) + length(p.fall);
  before = std::max(Ticks{0}, before - levels.forward);
  behind = std::max(Ticks{0}, behind - (all - levels.forward));
  const bool peak_in_forward = length(p.rise) < levels.forward;
  return {before + behind, peak_in_forward ? before + behind : behind};
}

/// What every schedule has at least as hard: of `state` and with time to spare beside compute.
TideProblem relaxed(const RankModel& rank, TideProblem p, Bytes state, bool alone, Spare spare) {
  const Cluster& cluster = rank.job->cluster;
  const Precision& precision = rank.job->precision;
  for (TideRoom& entry : p.rise) entry.until += spare.rise;
  if (p.rise.empty()) p.rise.push_back({spare.rise, p.step_room});
  if (p.fall.empty()) p.fall.push_back({Ticks{0}, p.step_room});
  p.fall.back().until += spare.fall;
  if (alone) {
    const sim::CopyRates rates = sim::copy_rates(cluster, {.ranks_per_host = 1});
    p.h2d = rates.h2d;
    p.d2h = rates.d2h;
    p.both = rates.both;
  }
  p.piece = state;
  p.pieces = 1;
  const Bytes adam = std::min(step_bytes(precision, rank.shards, true), step_bytes(precision, rank.shards, false));
  p.adam_state = {static_cast<double>(state.value) / (adam / cluster.gpu.adam.value).value};
  return p;
}

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

Ticks frame_of(const StepSummary& resident) {
  Ticks frame = resident.total;
  for (const PhaseSummary& phase : resident.phases)
    if (phase.phase == Phase::step) frame -= phase.duration;
  return frame;
}

}  // namespace

std::optional<reports::Tide> tide_of(Evaluator& evaluator, const Answer& answer) {
  const std::optional<Answer> tidal = best_tidal(evaluator, answer);
  if (!tidal) return std::nullopt;
  const SlowestRank slowest = evaluator.slowest(tidal->candidate);
  const StepSummary resident = evaluator.on_rank(slowest.rank, Candidate{}).summary;
  const RankModel& rank = evaluator.ranks()[slowest.rank];
  const std::shared_ptr<const TidalPieces> pieces = tidal_pieces(rank, tidal->candidate);
  const Ticks frame = frame_of(resident);
  const TideProblem& known = pieces->room.problem;
  const TideBound planned = fluid_bound(known);
  const Numel least = least_owned(evaluator, slowest.rank);
  const bool alone = least.value == 0;
  const Bytes state = bytes_of(alone ? rank.owned : least, rank.job->precision.state_bytes());
  const TideProblem p = relaxed(rank, known, state, alone, spare_of(resident, pieces->levels, known));
  reports::Tide tide;
  tide.rank = rank.rank;
  tide.piece = tidal->candidate.chunk_numel;
  tide.step = to_seconds(slowest.summary.total);
  tide.peak = slowest.summary.peak_allocated;
  tide.exposed = to_seconds(slowest.summary.total - frame);
  tide.parts = exposed_parts(slowest.summary, resident);
  const TideBound bound = fluid_bound(p);
  tide.bound = bound.step;
  tide.even_bound = bound.shared;
  tide.state = known.piece * known.pieces;
  tide.kept = planned.kept;
  tide.in = planned.in;
  tide.out = planned.out;
  tide.room = known.step_room;
  tide.keeps = known.may_stay;
  tide.cap = pieces->room.cap;
  tide.limit = limit_of(known, planned);
  return tide;
}

}  // namespace ebb
