#include "planner/evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"
#include "planner/checkpoint_tensors.hpp"
#include "planner/first_step.hpp"
#include "planner/life_time.hpp"
#include "planner/rank_estimate.hpp"
#include "planner/reserved.hpp"
#include "planner/rules.hpp"
#include "planner/tidal_pieces.hpp"

namespace ebb {

namespace {

Bound max_of(const Bound& a, const Bound& b) { return {std::max(a.step, b.step), std::max(a.reserved, b.reserved)}; }

/// When the last stand-in for backward ends. The phase goes on while gradients are still being reduced.
Seconds backward_compute_end(const Plan& plan, const Timeline& timeline) {
  Ticks last{0};
  for (std::size_t i = 0; i < plan.ops.size(); ++i)
    if (plan.ops[i].kind == OpKind::compute && plan.ops[i].phase == Phase::backward)
      last = std::max(last, timeline.end[i]);
  return to_seconds(last);
}

}  // namespace

Evaluator::Evaluator(const Job& job)
    : job_(&job),
      ranks_(job),
      hosts_(job, ranks_),
      ranks_per_host_(std::min(job.cluster.gpus_per_host, job.parallel.gpus)) {
  find_deciding();
}

/// The ranks that are slowest and fullest under resident, and what bounds need of them.
void Evaluator::find_deciding() {
  const Candidate resident;
  struct Extreme {
    std::size_t rank = 0;
    double value = -1;
  } slowest, fullest;
  std::map<std::size_t, StepSummary> summaries;  // by rank
  std::map<std::size_t, Seconds> computed;
  for (const std::size_t host : hosts_of(ranks_to_decide(resident))) {
    simulate(host, resident);
    const std::vector<std::size_t>& models = hosts_.hosts()[host].models;
    for (std::size_t cls = 0; cls < models.size(); ++cls) {
      const std::size_t rank = models[cls];
      summaries.emplace(rank, summaries_[cls]);
      computed.emplace(rank, backward_compute_end(plans_[cls], timelines_[cls]));
      const double step = to_seconds(summaries_[cls].total).value;
      const double peak = static_cast<double>(summaries_[cls].peak_held.value);
      if (step > slowest.value) slowest = {rank, step};
      if (peak > fullest.value) fullest = {rank, peak};
    }
  }
  resident_step_ = slowest.value;
  deciding_ = {slowest.rank};
  if (fullest.rank != slowest.rank) deciding_.push_back(fullest.rank);
  for (const std::size_t rank : deciding_) {
    const HostModel& host = hosts_.hosts()[hosts_.host_of(rank)];
    Numel least = ranks_.ranks()[rank].owned;
    for (const std::size_t other : host.models) {
      const RankModel& model = ranks_.ranks()[other];
      least = same_stage(model, ranks_.ranks()[rank]) ? std::min(least, model.owned) : Numel{0};
    }
    bounds_.emplace_back(
        ranks_.ranks()[rank], summaries[rank],
        HostLoad{.ranks = ranks_per_host_, .alike = host.alike(), .least_owned = least, .computed = computed[rank]});
  }
}

std::vector<std::vector<Shard>> Evaluator::deciding_shards() const {
  std::vector<std::vector<Shard>> shards;
  for (const std::size_t rank : deciding_) shards.push_back(ranks_.ranks()[rank].shards);
  return shards;
}

Bound Evaluator::bound(const Candidate& candidate) const {
  Bound highest;
  for (const RankBounds& of_rank : bounds_) highest = max_of(highest, of_rank(candidate));
  return highest;
}

Bound Evaluator::family_bound(const Candidate& candidate) const {
  Bound highest;
  for (const RankBounds& of_rank : bounds_) highest = max_of(highest, of_rank.of_family(candidate));
  return highest;
}

Bound Evaluator::probe(const Candidate& candidate) {
  Bound highest;
  for (const std::size_t host : hosts_of(deciding_)) {
    simulate(host, candidate);
    for (std::size_t cls = 0; cls < summaries_.size(); ++cls) {
      const DeviceUse use = device_use(plans_[cls], summaries_[cls]);
      highest = max_of(highest, {to_seconds(summaries_[cls].total), reserved_bound(candidate.policy, use)});
    }
  }
  return highest;
}

/// All ranks of the host, into plans_, timelines_ and summaries_.
void Evaluator::simulate(std::size_t host, const Candidate& candidate) {
  const HostModel& model = hosts_.hosts()[host];
  const std::size_t classes = model.models.size();
  if (plans_.size() < classes) plans_.resize(classes);
  runs_.plans.clear();
  for (std::size_t cls = 0; cls < classes; ++cls) {
    lower_into(ranks_.ranks()[model.models[cls]], candidate, plans_[cls]);
    runs_.plans.push_back(&plans_[cls]);
  }
  runs_.class_of_place = model.class_of_place;
  runs_.first_rank = model.first_rank;
  simulator_.run(runs_, job_->cluster, timelines_);
  summaries_.resize(classes);
  for (std::size_t cls = 0; cls < classes; ++cls) summarize(plans_[cls], timelines_[cls], scratch_, summaries_[cls]);
}

/// The deciding ranks, so that no answer is below its bound, and those of each stage that are largest in one estimate.
std::vector<std::size_t> Evaluator::ranks_to_decide(const Candidate& candidate) const {
  const std::vector<RankModel>& ranks = ranks_.ranks();
  std::vector<std::size_t> chosen = deciding_;
  for (std::size_t first = 0; first < ranks.size();) {
    RankEstimate largest = estimate(ranks[first], candidate);
    std::size_t slowest = first;
    std::size_t fullest = first;
    std::size_t heaviest = first;
    std::size_t i = first + 1;
    for (; i < ranks.size() && same_stage(ranks[i], ranks[first]); ++i) {
      const RankEstimate of_rank = estimate(ranks[i], candidate);
      if (of_rank.seconds > largest.seconds) slowest = i;
      if (of_rank.step_state > largest.step_state) fullest = i;
      if (of_rank.always > largest.always) heaviest = i;
      largest = {std::max(largest.seconds, of_rank.seconds), std::max(largest.step_state, of_rank.step_state),
                 std::max(largest.always, of_rank.always)};
    }
    chosen.insert(chosen.end(), {slowest, fullest, heaviest});
    first = i;
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

/// Hosts that carry these ranks, each once, in order.
std::vector<std::size_t> Evaluator::hosts_of(std::span<const std::size_t> ranks) const {
  std::vector<std::size_t> hosts;
  for (const std::size_t rank : ranks) hosts.push_back(hosts_.host_of(rank));
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return hosts;
}

Answer Evaluator::answer(const Candidate& candidate) {
  return answer_on(candidate, hosts_of(ranks_to_decide(candidate)));
}

Answer Evaluator::answer_of_all_hosts(const Candidate& candidate) {
  std::vector<std::size_t> all(hosts_.hosts().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return answer_on(candidate, all);
}

SlowestRank Evaluator::slowest(const Candidate& candidate) {
  SlowestRank slowest;
  Ticks longest{-1};
  for (const std::size_t host : hosts_of(ranks_to_decide(candidate))) {
    simulate(host, candidate);
    for (std::size_t cls = 0; cls < summaries_.size(); ++cls) {
      if (summaries_[cls].total <= longest) continue;
      longest = summaries_[cls].total;
      slowest = {hosts_.hosts()[host].models[cls], plans_[cls], timelines_[cls], summaries_[cls], {}};
    }
  }
  slowest.exposed = exposed_transfer(slowest.plan, slowest.timeline, slowest.summary);
  return slowest;
}

SlowestRank Evaluator::on_rank(std::size_t rank, const Candidate& candidate) {
  const std::size_t host = hosts_.host_of(rank);
  simulate(host, candidate);
  const std::vector<std::size_t>& models = hosts_.hosts()[host].models;
  const auto cls = static_cast<std::size_t>(std::find(models.begin(), models.end(), rank) - models.begin());
  EBB_ASSERT(cls < models.size());
  return {rank, plans_[cls], timelines_[cls], summaries_[cls],
          exposed_transfer(plans_[cls], timelines_[cls], summaries_[cls])};
}

namespace {

/// What torch would hold at most if this phase were the only one. Under `windowed`, whose pools do not share
/// (reserve_margin.hpp), what forward and backward left behind stays beside what the step needs.
Bytes reserved_in(const PhaseSummary& phase, bool in_step, Policy policy, DeviceUse use) {
  if (!in_step) use.forward_backward = phase.peak_allocated;
  if (in_step && policy != Policy::windowed) use.forward_backward = use.always;
  use.step = in_step ? phase.peak_held : use.always;
  return reserved_bound(policy, use);
}

/// Durations of the slowest rank; memory of whichever rank holds most in the phase.
void merge_phases(const StepSummary& summary, Policy policy, const DeviceUse& use, bool slowest, Answer& answer) {
  for (std::size_t i = 0; i < summary.phases.size(); ++i) {
    const PhaseSummary& phase = summary.phases[i];
    const bool in_step = in_step_window(summary.phases, i);
    auto same = std::find_if(answer.phases.begin(), answer.phases.end(),
                             [&](const PhaseAnswer& other) { return other.phase == phase.phase; });
    if (same == answer.phases.end()) {
      answer.phases.push_back({.phase = phase.phase});
      same = answer.phases.end() - 1;
    }
    if (slowest) same->duration = to_seconds(phase.duration);
    same->device_peak = std::max(same->device_peak, phase.peak_allocated);
    same->device_reserved = std::max(same->device_reserved, reserved_in(phase, in_step, policy, use));
  }
}

/// What lies on the device between steps: every buffer that is there when the step starts.
/// One of the many pieces that tidal leaves on the device behind a step, as tidal_pieces.cpp names them.
bool is_tail_piece(const Buffer& buffer) { return buffer.name.starts_with("tail "); }

/// The tail's pieces as one term.
std::vector<Term> terms_between_steps(const Plan& plan) {
  std::vector<Term> terms;
  Term tail;
  std::size_t pieces = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.memory != Memory::device || !buffer.initial) continue;
    if (is_tail_piece(buffer)) {
      tail.bytes += buffer.bytes;
      ++pieces;
    } else {
      terms.push_back({buffer.name, buffer.bytes});
    }
  }
  if (pieces == 0) return terms;
  tail.name = fmt::format("tail, {} piece{}", pieces, pieces == 1 ? "" : "s");
  terms.push_back(tail);
  return terms;
}

Seconds optimizer_of(const StepSummary& summary) {
  Ticks sum{0};
  for (const PhaseSummary& phase : summary.phases)
    if (phase.phase == Phase::step) sum += phase.duration;
  return to_seconds(sum);
}

void merge_first_steps(const RankModel& rank, Seconds optimizer, Seconds step, Answer& answer) {
  const FirstSteps steps = first_steps(rank, answer.candidate, optimizer, step);
  answer.first_step = std::max(answer.first_step, steps.first);
  answer.second_step = std::max(answer.second_step, steps.second);
  answer.first_steps_pinned = std::max(answer.first_steps_pinned, steps.pinned_in_first + steps.pinned_in_second);
}

/// What a checkpoint's load and save hold.
void merge_checkpoint(const RankModel& rank, Answer& answer) {
  PartBounds& bounds = answer.part_bounds;
  const auto of_load = [&](Start start) { return bound_of_moment(load_peak(rank, answer.candidate, start)); };
  const Start start = rank.job->checkpoint.start;
  bounds.resume = std::max(bounds.resume, of_load(Start::resume));
  if (start != Start::fresh) bounds.load = std::max(bounds.load, of_load(start));
  if (save_allocates(*rank.job, answer.candidate))
    bounds.save = std::max(bounds.save, bound_of_moment(save_peak(rank, answer.candidate)));
}

/// The largest of the parts, and which it is; where two need the same, the steps decide.
void set_reserved(Answer& answer) {
  const PartBounds& bounds = answer.part_bounds;
  answer.device_reserved = bounds.steps;
  const auto raise = [&](Phase phase, Bytes bound) {
    if (bound <= answer.device_reserved) return;
    answer.device_reserved = bound;
    answer.decides = phase;
  };
  raise(Phase::load, bounds.load);
  raise(Phase::save, bounds.save);
}

/// The maximum of what the answer has and this rank needs.
void add_rank(const RankModel& rank, const Plan& plan, const StepSummary& summary, Answer& answer) {
  const Policy policy = answer.candidate.policy;
  const DeviceUse use = device_use(plan, summary);
  const Seconds step = to_seconds(summary.total);
  merge_phases(summary, policy, use, step > answer.step, answer);
  merge_first_steps(rank, optimizer_of(summary), step, answer);
  answer.step = std::max(answer.step, step);
  answer.optimizer = std::max(answer.optimizer, optimizer_of(summary));
  if (summary.peak_allocated > answer.device_peak) {
    answer.device_peak = summary.peak_allocated;
    answer.device_terms = terms_between_steps(plan);
  }
  answer.device_between_steps = std::max(answer.device_between_steps, use.always + use.leaving + use.released);
  answer.part_bounds.steps = std::max(answer.part_bounds.steps, reserved_bound(policy, use));
  merge_checkpoint(rank, answer);
}

}  // namespace

Answer Evaluator::answer_on(const Candidate& candidate, std::span<const std::size_t> hosts) {
  EBB_ASSERT(!hosts.empty());
  Answer answer;
  answer.candidate = candidate;
  answer.flags = flags_of(candidate);
  answer.requires_megatron = requirement_of(job_->precision, candidate.policy);
  answer.objection = objection_to(*job_, candidate);
  std::map<std::size_t, Bytes> bounds;  // by rank
  for (const std::size_t host : hosts) {
    simulate(host, candidate);
    const std::vector<std::size_t>& models = hosts_.hosts()[host].models;
    if (candidate.policy == Policy::tidal) {
      const TidalRoom& room = tidal_pieces(ranks_.ranks()[models.front()], candidate)->room;  // alike on all ranks
      answer.cap = room.cap;
      answer.cap_keeps = room.problem.may_stay;
    }
    for (std::size_t cls = 0; cls < models.size(); ++cls) {
      bounds[models[cls]] = reserved_bound(candidate.policy, device_use(plans_[cls], summaries_[cls]));
      add_rank(ranks_.ranks()[models[cls]], plans_[cls], summaries_[cls], answer);
    }
  }
  set_reserved(answer);
  answer.reserving_ranks = reserving(bounds);
  add_host(answer);
  for (PhaseAnswer& phase : answer.phases) phase.host_pinned = answer.host_pinned_per_rank;
  answer.fits_device = answer.device_reserved <= device_budget_of(*job_);
  answer.slowdown = answer.step.value / resident_step_;
  return answer;
}

}  // namespace ebb
