// 1. Stretches. The walk over one step's tensors (allocation_trace_stage.hpp) goes layer by layer, forward and
//    backward, and in each it allocates and frees. A stretch is the time of one such pass. A layer's forward takes 1
//    unit, again 1 where it is recomputed, its backward 2; a prediction layer counts as a layer, the output layer and
//    its loss take what their FLOPs are of a layer's, embedding and data nothing. Units are scaled so that one
//    micro-batch's forward lasts f and its backward b.
//
// 2. The pipeline's schedule between them. With m micro-batches on PP stages of V virtual ones compute_model.cpp's
//    forward is m f + (PP - 1) f / V, and its backward the same in b. The second terms are the stage's idle time. It
//    falls, on stage p (the first is 0), with f' = f / V, b' = b / V and all stages taken to be as fast as this one:
//
//      before the first forward           p f'
//      before a backward after a backward f' each, before the first PP - 1 - p of them; interleaved before twice as
//      many before the first backward          (PP - 1 - p) (f' + b'), less the line above after the last backward p b'
//
//    One forward, one backward: stage p has done its warm-up and one forward more at PP f. The last stage starts its
//    first backward then, and (PP - 1 - p) b later the gradient has come to stage p. From then on a forward and a
//    backward take f + b everywhere and no stage waits. When there are no more forwards gradients still come every
//    f + b, so a stage is idle for f before each backward. Example, PP = 2, m = 2, f = 1, b = 2, "." idle:
//
//      stage 0   F F . . B B . B B    (f + b) - f before the first backward, f before the second
//      stage 1   . F B B F B B . .    p f before, p b after
//
//    Interleaved, in groups of PP micro-batches, warm-up has twice as many forwards beyond the last stage's, of V-th
//    parts, and so has cool-down. The first stages wait once more: the second group's first forward in the second
//    virtual stage, forward (V + 1) PP, needs what the last stage does in its forward V PP, the one of its pair PP
//    after its first backward, which is at V PP f'. On stage p that is V PP f' + PP (f' + b') + p f'. The stage itself,
//    whose first backward is at V PP f' + (PP - 1 - p) b', comes to this forward after 2 + 2p backwards, the first by
//    itself and the others in pairs. So it waits (PP - 1 - p) f' - (1 + p) b', where that is positive, and being late
//    it waits the less in cool-down.
//
//    The walk has enough micro-batches to fill the pipeline. The time of the others is one stretch where a forward and
//    a backward alternate, as high as the peak: what repeats may be the peak.
#include "planner/activation_stretches.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "models/errors.hpp"
#include "planner/allocation_trace_stage.hpp"
#include "planner/flops.hpp"

namespace ebb {

namespace {

/// One unit on the trace's clock: less than a host needs to enqueue a layer, so that the clock is the device's; a power
/// of two, so that sums are exact.
constexpr Seconds kUnit{0x1p-20};

struct Stretch {
  double units = 0;
  Bytes highest{0};
};

/// Stretches [first, end) of one micro-batch in one virtual stage.
struct Visit {
  Phase phase = Phase::forward;
  std::size_t first = 0;
  std::size_t end = 0;
  Bytes leaves{0};  // alive after it
};

/// Forward of the output layer, in layers.
double output_units(const ModelSpec& model, std::int64_t sequence) {
  Flops layers{0};
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    layers += attention_matrix_flops(model, sequence) + attention_core_flops(model, sequence) +
              feed_forward_flops(model, model.layer_is_moe(layer), sequence);
  }
  if (layers.value <= 0) return 1;
  return output_flops(model, sequence).value * static_cast<double>(model.layers) / layers.value;
}

class Walk {
 public:
  Walk(const Job& job, const StageLayout& stage);

  std::vector<Stretch> stretches;
  std::vector<Visit> visits;
  std::int64_t micro_batches = 0;
  Bytes peak{0};
  /// Of one micro-batch through all virtual stages.
  double units(Phase phase) const;

 private:
  void visit(const TracePart& part, const StageTrace& run, std::size_t index);
  void open(double units);

  double output_;
  // Where the walk is:
  std::vector<Bytes> alive_;  // by tensor
  Bytes live_{0};
  std::size_t mark_ = 0;      // into the part's clock
  Seconds clock_{0};          // at the mark before
  std::size_t forwards_ = 0;  // visits so far
};

Walk::Walk(const Job& job, const StageLayout& stage) : output_(output_units(job.model, job.batch.sequence)) {
  TracePart part;
  TraceBuilder trace(true);
  trace.start(part);
  StageTrace run(trace, job, stage, {});
  run.set_layer_times(kUnit, {2 * kUnit.value});
  run.begin_warm();
  run.run();
  alive_.assign(trace.tensors(), Bytes{0});
  for (std::size_t i = 0; i < run.visits().size(); ++i) visit(part, run, i);
  micro_batches = static_cast<std::int64_t>(forwards_ / stage.chunks.size());
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    if (units(phase) > 0) continue;
    // A stage without layers and without the output layer.
    for (const Visit& visit : visits)
      if (visit.phase == phase) stretches[visit.first].units = 1;
  }
}

double Walk::units(Phase phase) const {
  double sum = 0;
  for (const Visit& visit : visits)
    for (std::size_t i = visit.first; visit.phase == phase && i < visit.end; ++i) sum += stretches[i].units;
  return sum / static_cast<double>(micro_batches);
}

/// What a visit does before its first layer is in that layer's stretch.
void Walk::open(double units) {
  if (stretches.size() > visits.back().first && stretches.back().units == 0)
    stretches.back().units = units;
  else
    stretches.push_back({units, live_});
}

void Walk::visit(const TracePart& part, const StageTrace& run, std::size_t index) {
  const StageVisit& at = run.visits()[index];
  const std::size_t end = index + 1 < run.visits().size() ? run.visits()[index + 1].event : part.events.size();
  const bool is_forward = at.phase == Phase::forward;
  visits.push_back({at.phase, stretches.size(), 0, {}});
  open(!is_forward && at.chunk->output ? 2 * output_ : 0);
  for (std::size_t i = at.event; i < end; ++i) {
    for (; mark_ < part.clock.size() && part.clock[mark_].event <= i; ++mark_) {
      const double passed = part.clock[mark_].at.value - clock_.value;
      clock_ = part.clock[mark_].at;
      if (passed > 0) open(passed / kUnit.value);
    }
    if (is_forward && at.chunk->output && i == run.forward_ends()[forwards_]) open(output_);
    const AllocationEvent& event = part.events[i];
    if (event.kind == AllocationEvent::Kind::allocate) alive_[event.tensor] = event.bytes;
    live_ += event.kind == AllocationEvent::Kind::allocate ? event.bytes : -1 * alive_[event.tensor];
    stretches.back().highest = std::max(stretches.back().highest, live_);
    peak = std::max(peak, live_);
  }
  visits.back().end = stretches.size();
  visits.back().leaves = live_;
  if (is_forward) ++forwards_;
}

bool follows_backward(const std::vector<Visit>& visits, std::size_t i) {
  return i > 0 && visits[i].phase == Phase::backward && visits[i - 1].phase == Phase::backward;
}

/// A stage's idle time before each of its visits, in their order, and after the last.
class Waits {
 public:
  Waits(const Job& job, std::int64_t stage, const std::vector<Visit>& visits, double forward, double backward);
  /// Precondition: called once for each visit, in order.
  double before(std::size_t visit);
  double trail() const { return trail_; }

 private:
  const std::vector<Visit>& visits_;
  double lead_;
  double first_backward_ = 0;
  std::ptrdiff_t second_group_ = -1;  // which forward waits for the last stage's second group; -1: none
  double second_group_wait_ = 0;
  double cool_down_;               // each
  std::ptrdiff_t cool_downs_ = 0;  // how many
  double trail_;
  std::ptrdiff_t forwards_ = 0;  // so far
  bool in_backward_ = false;     // there was one
  double late_ = 0;
};

Waits::Waits(const Job& job, std::int64_t stage, const std::vector<Visit>& visits, double forward, double backward)
    : visits_(visits) {
  const Parallel& parallel = job.parallel;
  const bool interleaved = parallel.virtual_pipeline > 1;
  const double f = forward / static_cast<double>(parallel.virtual_pipeline);
  const double b = backward / static_cast<double>(parallel.virtual_pipeline);
  const std::int64_t later = parallel.pipeline - 1 - stage;
  for (std::size_t i = 0; i < visits.size(); ++i) cool_downs_ += follows_backward(visits, i) ? 1 : 0;
  cool_downs_ = std::min<std::ptrdiff_t>(cool_downs_, (interleaved ? 2 : 1) * later);
  lead_ = static_cast<double>(stage) * f;
  trail_ = static_cast<double>(stage) * b;
  cool_down_ = f;
  first_backward_ = static_cast<double>(later) * (f + b) - static_cast<double>(cool_downs_) * f;
  const bool by_stages = parallel.micro_batch_group == 0 || parallel.micro_batch_group == parallel.pipeline;
  if (!interleaved || !by_stages || job.micro_batches() <= parallel.pipeline) return;
  second_group_ = (parallel.virtual_pipeline + 1) * parallel.pipeline;
  second_group_wait_ = std::max(0.0, static_cast<double>(later) * f - static_cast<double>(stage + 1) * b);
}

double Waits::before(std::size_t visit) {
  if (visits_[visit].phase == Phase::forward) {
    const std::ptrdiff_t forward = forwards_++;
    if (forward == 0) return lead_;
    if (forward == second_group_) return late_ = second_group_wait_;
    return 0;
  }
  if (!std::exchange(in_backward_, true)) return first_backward_;
  if (!follows_backward(visits_, visit) || cool_downs_-- <= 0) return 0;
  const double wait = std::max(0.0, cool_down_ - late_);
  late_ -= cool_down_ - wait;
  return wait;
}

}  // namespace

std::vector<ActivationStretch> activation_stretches(const Job& job, const StageLayout& stage,
                                                    const ComputeTime& compute) {
  const Walk walk(job, stage);
  const std::int64_t micro_batches = std::max<std::int64_t>(job.micro_batches(), 1);
  const double times = static_cast<double>(micro_batches) + static_cast<double>(job.parallel.pipeline - 1) /
                                                                static_cast<double>(job.parallel.virtual_pipeline);
  const double forward = compute.forward.value / times;
  const double backward = compute.backward.value / times;
  const std::array<double, 2> scales{forward / walk.units(Phase::forward), backward / walk.units(Phase::backward)};
  Waits waits(job, stage.pipeline_rank, walk.visits, forward, backward);

  std::vector<ActivationStretch> result;
  const auto add = [&](double length, Bytes highest) {
    if (length > 0 || highest.value > 0) result.push_back({{length}, highest});
  };
  // Half-way between the first backward and the last forward.
  std::size_t first_backward = 0;
  while (walk.visits[first_backward].phase == Phase::forward) ++first_backward;
  std::size_t last_forward = walk.visits.size() - 1;
  while (walk.visits[last_forward].phase == Phase::backward) --last_forward;
  const std::size_t middle = (first_backward + last_forward) / 2;
  for (std::size_t i = 0; i < walk.visits.size(); ++i) {
    const Visit& visit = walk.visits[i];
    const Bytes before = i > 0 ? walk.visits[i - 1].leaves : Bytes{0};
    if (const double wait = waits.before(i); wait > 0) add(wait, before);
    for (std::size_t k = visit.first; k < visit.end; ++k)
      add(walk.stretches[k].units * scales[visit.phase == Phase::forward ? 0 : 1], walk.stretches[k].highest);
    if (i == middle && micro_batches > walk.micro_batches)
      add(static_cast<double>(micro_batches - walk.micro_batches) * (forward + backward), walk.peak);
  }
  add(waits.trail(), {});
  return result;
}

}  // namespace ebb
