#include "planner/life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "models/quantity_text.hpp"
#include "planner/evaluator.hpp"
#include "planner/life_curve.hpp"
#include "planner/life_replay.hpp"
#include "planner/life_terms.hpp"
#include "planner/life_time.hpp"
#include "planner/reserve_margin.hpp"

namespace ebb {

namespace {

constexpr std::size_t kMostPoints = 2000;

std::string name_of_start(Start start) {
  switch (start) {
    case Start::fresh:
      return "fresh";
    case Start::resume:
      return "resume";
    case Start::no_load_optim:
      return "no-load-optim";
    case Start::finetune:
      return "finetune";
  }
  return "";
}

std::string variant_of(const Job& job, Phase phase, Start start) {
  if (phase == Phase::load || phase == Phase::first_step) return start == Start::fresh ? "" : name_of_start(start);
  if (phase != Phase::save) return "";
  if (job.checkpoint.format == CheckpointFormat::torch) return "torch";
  return job.checkpoint.sharding == CheckpointSharding::fully_reshardable ? "fully-reshardable" : "dp-reshardable";
}

/// Tokens of the fullest rank's experts over the mean that an upper bound reckons with, where the job states no more:
/// the customary capacity factor (Fedus et al., Switch Transformers, 2021), beyond which tokens would be dropped.
constexpr double kUpperImbalance = 1.25;

/// What workspaces may take beyond the model's: recorded dense runs leave up to 99.1 MiB where it has 97.5, runs with
/// experts up to 512 where it has 257.5 (Megatron-LM's functional tests, tests/data/megatron).
Bytes workspace_margin(const Job& job) {
  if (job.compute.attention == Attention::local) return {0};
  return job.model.moe ? 255_MiB : 2_MiB;
}

Bytes imbalance_margin(const Job& job, Bytes experts) {
  const RoutingSettings& routing = job.experts;
  if (!job.model.moe || routing.pad_to_capacity) return {0};
  const double most = routing.capacity_factor.value_or(std::max(kUpperImbalance, routing.imbalance));
  const double more = most / std::max(routing.imbalance, 1.0) - 1;
  return {static_cast<std::int64_t>(static_cast<double>(experts.value) * std::max(more, 0.0))};
}

void raise_bound(LifePhase& phase, Bytes bound, const char* by) {
  if (bound <= phase.device_bound) return;
  phase.uncertainty.push_back({by, bound - phase.device_bound});
  phase.device_upper += bound - phase.device_bound;
  phase.device_bound = bound;
}

Bytes highest_bound(std::span<const LifePhase> phases) {
  Bytes highest{0};
  for (const LifePhase& phase : phases) highest = std::max(highest, phase.device_bound);
  return highest;
}

/// One life: its own start, replayed on every rank that may decide.
class Lifetime {
 public:
  Lifetime(const Job& job, const Answer& answer, Evaluator& evaluator, const SlowestRank& slowest, Start start)
      : job_(job), answer_(answer), evaluator_(evaluator), slowest_(slowest), start_(start) {}

  std::vector<LifePhase> phases();
  void add_curve(Life& life);

 private:
  void replay(std::size_t index);
  void add(const PartMemory& part, const RankModel& rank);
  void add_times(LifePhase& phase);
  Bytes needed() const;
  Bytes margin_of(const LifePhase& phase) const;
  void add_upper(LifePhase& phase);
  PhaseTime step_time(Phase phase) const;
  PhaseTime skip_time() const;
  Seconds exposed_in_step() const;

  const Job& job_;
  const Answer& answer_;
  Evaluator& evaluator_;
  const SlowestRank& slowest_;
  Start start_;
  std::vector<LifePhase> phases_;
  Bytes highest_{-1};  // peak of the rank that the curve shows
  std::int64_t curve_rank_ = 0;
  TracePart steady_;
  std::vector<LivePoint> live_;
};

void Lifetime::replay(std::size_t index) {
  const RankModel& rank = evaluator_.ranks()[index];
  AllocationTrace trace = allocation_trace(rank, answer_.candidate, {.start = start_, .whole_life = true});
  LifeMemory memory = replay_life(trace, std::max(device_budget_of(job_), needed()),
                                  {.expandable_segments = job_.megatron.expandable_segments});
  for (const PartMemory& part : memory.parts) add(part, rank);
  Bytes peak{0};
  for (const LivePoint& point : memory.steady) peak = std::max(peak, point.bytes);
  if (peak <= highest_) return;
  highest_ = peak;
  curve_rank_ = rank.rank;
  for (TracePart& part : trace.parts)
    if (part.phase == Phase::step && !part.marks.empty()) {
      steady_ = std::move(part);
      break;
    }
  live_ = std::move(memory.steady);
}

/// The maximum of what is known and this rank's part.
void Lifetime::add(const PartMemory& part, const RankModel& rank) {
  auto known =
      std::find_if(phases_.begin(), phases_.end(), [&](const LifePhase& phase) { return phase.phase == part.phase; });
  if (known == phases_.end()) {
    phases_.emplace_back();
    known = phases_.end() - 1;
    known->phase = part.phase;
    known->variant = variant_of(job_, part.phase, start_);
    known->device_peak = Bytes{-1};
  }
  known->device_reserved = std::max(known->device_reserved, part.peak_reserved);
  known->allocated_after = std::max(known->allocated_after, part.allocated);
  known->reserved_after = std::max(known->reserved_after, part.reserved);
  if (part.peak_allocated <= known->device_peak) return;
  known->device_peak = part.peak_allocated;
  known->rank = rank.rank;
  known->terms = life_terms(rank, answer_.candidate, part.phase, part.at_peak);
}

/// By the search; the whole life runs within it: torch gives back what it caches before it asks for more.
Bytes Lifetime::needed() const {
  return start_ == job_.checkpoint.start ? answer_.device_reserved : answer_.device_resume;
}

/// The margins of the phase that the decision goes by.
Bytes Lifetime::margin_of(const LifePhase& phase) const {
  for (const PhaseAnswer& of_step : answer_.phases)
    if (of_step.phase == phase.phase) return of_step.device_reserved;
  const PartBounds& bounds = answer_.part_bounds;
  if (phase.phase == Phase::init) return phase.device_reserved;  // nothing of the step is there yet
  if (phase.phase == Phase::load) return start_ == Start::resume ? bounds.resume : bounds.load;
  if (phase.phase == Phase::save && bounds.save.value > 0) return bounds.save;
  return bound_of_moment(phase.device_peak);
}

/// What the replay holds, the margins that the decision goes by (reserve_margin.hpp), and what neither knows.
void Lifetime::add_upper(LifePhase& phase) {
  const auto add_term = [&](const char* name, Bytes bytes) {
    if (bytes.value > 0) phase.uncertainty.push_back({name, bytes});
  };
  const Bytes margin = margin_of(phase);
  const Bytes most = std::max(needed(), phase.device_peak);
  phase.device_reserved = std::min(std::max(phase.device_reserved, phase.device_peak), most);
  phase.device_bound = std::min(std::max(phase.device_reserved, margin), most);
  add_term("allocator cache and fragments", phase.device_reserved - phase.device_peak);
  add_term("order of allocations", margin - phase.device_reserved);
  add_term("workspaces", workspace_margin(job_));
  for (const LifeTerm& term : phase.terms)
    if (term.term == MemoryTerm::experts) add_term("expert imbalance", imbalance_margin(job_, term.bytes));
  phase.device_upper = phase.device_peak;
  for (const Term& term : phase.uncertainty) phase.device_upper += term.bytes;
}

Seconds Lifetime::exposed_in_step() const {
  Seconds sum{0};
  for (const Seconds exposed : slowest_.exposed) sum += exposed;
  return sum;
}

PhaseTime Lifetime::step_time(Phase phase) const {
  PhaseTime time;
  for (std::size_t i = 0; i < slowest_.summary.phases.size(); ++i) {
    if (slowest_.summary.phases[i].phase != phase) continue;
    time.seconds += to_seconds(slowest_.summary.phases[i].duration);
    time.exposed += slowest_.exposed[i];
  }
  return time;
}

/// All of a step but the optimizer's: copies that finalize began are waited for there.
PhaseTime Lifetime::skip_time() const {
  PhaseTime time;
  for (std::size_t i = 0; i < slowest_.summary.phases.size(); ++i) {
    const PhaseSummary& phase = slowest_.summary.phases[i];
    if (phase.phase == Phase::step) continue;
    time.seconds += to_seconds(phase.duration);
    time.exposed += slowest_.exposed[i];
  }
  return time;
}

void Lifetime::add_times(LifePhase& phase) {
  const RankModel& rank = evaluator_.ranks()[slowest_.rank];
  const std::int64_t ranks = std::min(job_.cluster.gpus_per_host, job_.parallel.gpus);
  PhaseTime time;
  switch (phase.phase) {
    case Phase::init:
      time = init_time(rank, answer_.candidate);
      break;
    case Phase::load:
      phase.stored = stored_bytes(rank, 0, start_ == Start::resume);
      time = load_time(rank, answer_.candidate, start_, phase.stored, ranks);
      break;
    case Phase::first_step:
      time.seconds = start_ == Start::resume ? answer_.step : answer_.first_step;
      time.exposed = exposed_in_step();
      if (start_ != Start::resume) time.exposed = time.exposed * first_step_traffic(rank, answer_.candidate);
      break;
    case Phase::skip:
      time = skip_time();
      break;
    case Phase::save:
      phase.stored = stored_bytes(rank, 0, job_.checkpoint.save_optimizer);
      time = save_time(rank, answer_.candidate, phase.stored, ranks);
      break;
    case Phase::forward:
    case Phase::backward:
    case Phase::finalize:
    case Phase::step:
    case Phase::gather:
      time = step_time(phase.phase);
      break;
  }
  phase.seconds = time.seconds;
  phase.exposed = time.exposed;
  phase.storage_known = time.storage_known;
}

std::vector<LifePhase> Lifetime::phases() {
  for (const std::size_t index : answer_.reserving_ranks) replay(index);
  const bool gathers = std::any_of(slowest_.summary.phases.begin(), slowest_.summary.phases.end(),
                                   [](const PhaseSummary& phase) { return phase.phase == Phase::gather; });
  if (!gathers) std::erase_if(phases_, [](const LifePhase& phase) { return phase.phase == Phase::gather; });
  for (LifePhase& phase : phases_) {
    add_upper(phase);
    add_times(phase);
    phase.host = host_totals(job_, evaluator_.hosts(), evaluator_.ranks(), answer_.candidate, phase.phase, start_);
  }
  // A budget that is too small: the least that would do is known to one hundredth, and a replay within that may hold a
  // little less. Those that come closest need it.
  const Bytes highest = highest_bound(phases_);
  for (LifePhase& phase : phases_)
    if (phase.device_bound == highest) raise_bound(phase, needed(), "gaps that nothing fits into");
  return phases_;
}

void Lifetime::add_curve(Life& life) {
  StepTimes times;
  for (const PhaseSummary& phase : slowest_.summary.phases) {
    const Seconds duration = to_seconds(phase.duration);
    times.step_end += duration;
    if (phase.phase == Phase::finalize) times.finalize_end = times.step_end;
    if (phase.phase == Phase::forward || phase.phase == Phase::backward) times.backward_end = times.step_end;
  }
  times.finalize_end = std::max(times.finalize_end, times.backward_end);
  life.curve = thinned(live_curve(steady_, live_, times), kMostPoints);
  life.curve_rank = curve_rank_;
  const auto turns = std::count_if(steady_.marks.begin(), steady_.marks.end(),
                                   [](const PhaseMark& mark) { return mark.phase == Phase::backward; });
  life.curve_micro_batches = turns / job_.parallel.virtual_pipeline;
}

}  // namespace

namespace {

/// A phase that holds more host memory than a host has; "" where it does not.
std::string host_excess(const Job& job, const LifePhase& phase) {
  const Bytes held = phase.host.pinned_per_host + phase.host.pageable_per_host;
  const Bytes has = job.cluster.host.memory.value;
  if (held <= has) return "";
  return fmt::format("{} holds {} of a host's memory, pinned and pageable, {} more than it has", name_of(phase.phase),
                     format_bytes(held), format_bytes(held - has));
}

/// Of a resume's phases the load, and its first step with all that follows: the same phases as before it, which differ
/// only in what the allocator holds by then.
std::vector<LifePhase> resumed_phases(std::vector<LifePhase> phases) {
  const auto loads =
      std::stable_partition(phases.begin(), phases.end(), [](const LifePhase& p) { return p.phase <= Phase::load; });
  const Bytes after = highest_bound({loads, phases.end()});
  std::erase_if(phases, [](const LifePhase& p) { return p.phase != Phase::load && p.phase != Phase::first_step; });
  for (LifePhase& phase : phases) {
    phase.later = true;
    if (phase.phase == Phase::first_step) raise_bound(phase, after, "later steps and saves");
  }
  return phases;
}

}  // namespace

Life life_of(const Job& job, const Answer& answer) {
  Evaluator evaluator(job);
  const SlowestRank slowest = evaluator.slowest(answer.candidate);
  Life life;
  Lifetime own(job, answer, evaluator, slowest, job.checkpoint.start);
  life.phases = own.phases();
  own.add_curve(life);
  if (job.checkpoint.start != Start::resume)
    for (LifePhase& phase : resumed_phases(Lifetime(job, answer, evaluator, slowest, Start::resume).phases()))
      life.phases.push_back(std::move(phase));
  life.host_limits = host_limits(job, evaluator.hosts(), evaluator.ranks(), answer.candidate);
  for (const LifePhase& phase : life.phases)
    if (const std::string excess = host_excess(job, phase); !excess.empty()) life.host_limits.push_back(excess);
  return life;
}

}  // namespace ebb
