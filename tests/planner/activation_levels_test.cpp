// Activation levels: the stack over given stretches against its definition, schedules of 2 and 4 stages by hand,
// pipelines against a simulation of who waits for whom, and the sums and orders for every job of the library.
#include "planner/activation_levels.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "models/job_yaml.hpp"
#include "models/library.hpp"
#include "planner/activations.hpp"
#include "planner/allocation_trace_stage.hpp"
#include "planner/flops.hpp"
#include "tests/catch.hpp"
#include "tests/planner/test_job.hpp"

using namespace ebb;

namespace {

Bytes sum_of(const std::vector<ActivationLevel>& levels) {
  Bytes sum{0};
  for (const ActivationLevel& level : levels) sum += level.bytes;
  return sum;
}

/// Bytes of the levels that are alive at `time`.
Bytes alive_at(const std::vector<ActivationLevel>& levels, Ticks time) {
  Bytes sum{0};
  for (const ActivationLevel& level : levels)
    if (level.rises <= time && time < level.falls) sum += level.bytes;
  return sum;
}

void check_stack(const std::vector<ActivationLevel>& levels, Ticks total) {
  for (std::size_t i = 0; i < levels.size(); ++i) {
    CHECK(levels[i].bytes.value > 0);
    CHECK(Ticks{0} <= levels[i].rises);
    CHECK(levels[i].rises <= levels[i].falls);
    CHECK(levels[i].falls <= total);
    if (i == 0) continue;
    CHECK(levels[i - 1].rises <= levels[i].rises);
    CHECK(levels[i - 1].falls >= levels[i].falls);
  }
}

Ticks seconds(std::int64_t value) { return {value * kTicksPerSecond}; }

/// One layer a stage of the test's small model, of which one micro-batch takes 1 s forward and 2 s backward.
struct Pipeline {
  Job job = test::small_job();
  ComputeTime compute;

  Pipeline(std::int64_t stages, std::int64_t virtual_stages, std::int64_t micro_batches) {
    job.model.layers = stages * virtual_stages;
    job.model.vocab = job.model.vocab_divisible_by = 64;  // an output layer that takes next to nothing
    job.parallel.gpus = job.parallel.pipeline = stages;
    job.parallel.virtual_pipeline = virtual_stages;
    job.batch.global = micro_batches;
    const double times =
        static_cast<double>(micro_batches) + static_cast<double>(stages - 1) / static_cast<double>(virtual_stages);
    compute = {Seconds{times}, Seconds{2 * times}};
  }
  std::vector<ActivationLevel> levels(std::int64_t stage) const {
    const StageLayout layout = stage_layout(job, stage);
    return activation_levels(job, layout, compute, footprint_of(job, layout, Numel{0}), 1000).levels;
  }
  /// Rounded to whole seconds: rises and falls without what is as small as the output layer.
  std::vector<std::int64_t> rises(std::int64_t stage) const { return times(stage, &ActivationLevel::rises); }
  std::vector<std::int64_t> falls(std::int64_t stage) const { return times(stage, &ActivationLevel::falls); }

 private:
  std::vector<std::int64_t> times(std::int64_t stage, Ticks ActivationLevel::*time) const {
    std::vector<std::int64_t> result;
    for (const ActivationLevel& level : levels(stage)) {
      const auto whole = static_cast<std::int64_t>(std::llround(to_seconds(level.*time).value));
      CHECK(to_seconds(level.*time).value == Approx(static_cast<double>(whole)).margin(0.05));
      if (result.empty() || result.back() != whole) result.push_back(whole);
    }
    return result;
  }
};
using Times = std::vector<std::int64_t>;

/// The layers that a visit of the walk passes: how long each takes, in units, and the most that is alive in it.
struct Pass {
  double units = 0;
  Bytes highest{0};
};
struct WalkedVisit {
  Phase phase = Phase::forward;
  std::vector<Pass> passes;
};

/// By the clock of a walk whose layers take 1 and 2 microseconds; the output's share from its FLOPs.
std::vector<WalkedVisit> walked(const Job& job, const StageLayout& stage) {
  TracePart part;
  TraceBuilder trace(true);
  trace.start(part);
  StageTrace run(trace, job, stage, {});
  run.set_layer_times(Seconds{1e-6}, Seconds{2e-6});
  run.begin_warm();
  run.run();
  const ModelSpec& model = job.model;
  const std::int64_t s = job.batch.sequence;
  const double layer =
      (attention_matrix_flops(model, s) + attention_core_flops(model, s) + feed_forward_flops(model, false, s)).value;
  const double output = output_flops(model, s).value / layer;
  std::vector<WalkedVisit> result;
  std::map<std::uint32_t, Bytes> alive;
  Bytes live{0};
  std::size_t forwards = 0;
  for (std::size_t v = 0; v < run.visits().size(); ++v) {
    const StageVisit& visit = run.visits()[v];
    const std::size_t end = v + 1 < run.visits().size() ? run.visits()[v + 1].event : part.events.size();
    const bool forward = visit.phase == Phase::forward;
    WalkedVisit walk{visit.phase, {}};
    Pass pass{!forward && visit.chunk->output ? 2 * output : 0, live};
    const auto next = [&](double units) {
      if (pass.units > 0) walk.passes.push_back(pass);
      const Bytes highest = pass.units > 0 ? live : pass.highest;
      pass = {units, highest};
    };
    for (std::size_t e = visit.event; e < end; ++e) {
      for (const ClockMark& mark : part.clock) {
        if (mark.event != e) continue;
        const Seconds before = &mark == part.clock.data() ? Seconds{0} : (&mark)[-1].at;
        const double units = (mark.at - before).value * 1e6;
        if (units > 0.5) next(std::round(units));
      }
      if (forward && visit.chunk->output && run.forward_ends()[forwards] == e) next(output);
      const AllocationEvent& event = part.events[e];
      live += event.kind == AllocationEvent::Kind::allocate ? event.bytes : -1 * alive[event.tensor];
      if (event.kind == AllocationEvent::Kind::allocate) alive[event.tensor] = event.bytes;
      pass.highest = std::max(pass.highest, live);
    }
    walk.passes.push_back(pass);
    result.push_back(std::move(walk));
    if (forward) ++forwards;
  }
  return result;
}

/// When each visit of each stage begins, in seconds: every stage does its visits in order, forward after the virtual
/// stage before, backward after the one behind.
class PipelineClock {
 public:
  explicit PipelineClock(const Job& job) : stages_(job.parallel.pipeline), virtual_(job.parallel.virtual_pipeline) {
    const std::int64_t group = virtual_ > 1 ? stages_ : 1;
    std::vector<std::pair<std::int64_t, std::int64_t>> order;  // virtual stage, micro-batch
    for (std::int64_t done = 0; done < job.micro_batches(); done += group)
      for (std::int64_t v = 0; v < virtual_; ++v)
        for (std::int64_t i = done; i < std::min(done + group, job.micro_batches()); ++i) order.emplace_back(v, i);
    std::vector<std::vector<Visit>> todo(static_cast<std::size_t>(stages_));
    for (std::int64_t p = 0; p < stages_; ++p) {
      const std::int64_t later = stages_ - 1 - p;
      const std::size_t ahead = std::min<std::size_t>(
          static_cast<std::size_t>(virtual_ == 1 ? later : 2 * later + (virtual_ - 1) * group), order.size());
      for (std::size_t k = 0; k < order.size() + ahead; ++k) {
        if (k < order.size()) todo[p].push_back({true, order[k].first, order[k].second});
        if (k >= ahead) todo[p].push_back({false, virtual_ - 1 - order[k - ahead].first, order[k - ahead].second});
      }
    }
    starts.resize(todo.size());
    run(todo);
  }
  std::vector<std::vector<double>> starts;  // by stage and visit
  double end = 0;
  double forward() const { return 1.0 / static_cast<double>(virtual_); }

 private:
  struct Visit {
    bool forward = true;
    std::int64_t chunk = 0;
    std::int64_t batch = 0;
  };
  using Key = std::tuple<bool, std::int64_t, std::int64_t>;  // forward, place in the model, micro-batch

  void run(const std::vector<std::vector<Visit>>& todo) {
    std::map<Key, double> done;
    std::vector<double> free(todo.size(), 0.0);
    const std::int64_t last = stages_ * virtual_ - 1;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t p = 0; p < todo.size(); ++p) {
        if (starts[p].size() == todo[p].size()) continue;
        const Visit& visit = todo[p][starts[p].size()];
        const std::int64_t place = visit.chunk * stages_ + static_cast<std::int64_t>(p);
        double ready = 0;
        if (visit.forward ? place > 0 : true) {
          const Key needs = visit.forward   ? Key{true, place - 1, visit.batch}
                            : place == last ? Key{true, place, visit.batch}
                                            : Key{false, place + 1, visit.batch};
          const auto found = done.find(needs);
          if (found == done.end()) continue;
          ready = found->second;
        }
        starts[p].push_back(std::max(ready, free[p]));
        free[p] = starts[p].back() + (visit.forward ? forward() : 2 * forward());
        done[{visit.forward, place, visit.batch}] = free[p];
        end = std::max(end, free[p]);
        moved = true;
      }
    }
  }

  std::int64_t stages_;
  std::int64_t virtual_;
};

}  // namespace

TEST_CASE("levels over five stretches, by hand") {
  const auto stretch = [](std::int64_t bytes) { return ActivationStretch{Seconds{1}, Bytes{bytes}}; };
  const std::vector<ActivationStretch> stretches{stretch(3), stretch(1), stretch(5), stretch(4), stretch(2)};
  using Levels = std::vector<ActivationLevel>;
  const ActivationLevel two{Bytes{2}, seconds(0), seconds(5)};
  const ActivationLevel three{Bytes{1}, seconds(0), seconds(4)};
  const ActivationLevel four{Bytes{1}, seconds(2), seconds(4)};
  const ActivationLevel five{Bytes{1}, seconds(2), seconds(3)};
  CHECK(levels_of(stretches, seconds(5), Bytes{5}, 9) == Levels{two, three, four, five});
  // A byte more is below, a byte less is taken off there, and three less are the lowest two levels.
  CHECK(levels_of(stretches, seconds(5), Bytes{6}, 9).front() == ActivationLevel{Bytes{3}, seconds(0), seconds(5)});
  CHECK(levels_of(stretches, seconds(5), Bytes{4}, 9).front() == ActivationLevel{Bytes{1}, seconds(0), seconds(5)});
  CHECK(levels_of(stretches, seconds(5), Bytes{2}, 9) == Levels{four, five});
  // Joining the second with the first or the fourth with the third adds a byte for a second, the third two seconds.
  CHECK(levels_of(stretches, seconds(5), Bytes{5}, 3).front() == ActivationLevel{Bytes{3}, seconds(0), seconds(5)});
  CHECK(levels_of(stretches, seconds(5), Bytes{5}, 1) == Levels{{Bytes{5}, seconds(0), seconds(5)}});
  // Nothing, and something at no known time.
  CHECK(levels_of({}, seconds(5), Bytes{0}, 1).empty());
  CHECK(levels_of({}, seconds(5), Bytes{7}, 1) == Levels{{Bytes{7}, seconds(0), seconds(5)}});
}

TEST_CASE("the stack is the least that grows and then shrinks; with fewer levels it holds no less") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<ActivationStretch> stretches(1 + random() % 12);
    for (ActivationStretch& stretch : stretches)
      stretch = {Seconds{static_cast<double>(1 + random() % 4)}, Bytes{static_cast<std::int64_t>(random() % 9)}};
    Bytes peak{0};
    std::int64_t length = 0;
    for (const ActivationStretch& stretch : stretches) {
      peak = std::max(peak, stretch.highest);
      length += std::llround(stretch.length.value);
    }
    const std::vector<ActivationLevel> all = levels_of(stretches, seconds(length), peak, 100);
    check_stack(all, seconds(length));
    CHECK(sum_of(all) == peak);
    for (const std::size_t most : {std::size_t{1}, std::size_t{3}, std::size_t{5}}) {
      const std::vector<ActivationLevel> few = levels_of(stretches, seconds(length), peak, most);
      check_stack(few, seconds(length));
      CHECK(few.size() == std::min(most, all.size()));
      CHECK(sum_of(few) == peak);
      for (std::int64_t t = 0; t < length; ++t) CHECK(alive_at(few, seconds(t)) >= alive_at(all, seconds(t)));
    }
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      const auto highest = [&](std::size_t from, std::size_t to) {
        Bytes most{0};
        for (std::size_t k = from; k < to; ++k) most = std::max(most, stretches[k].highest);
        return most;
      };
      const Bytes least = std::min(highest(0, i + 1), highest(i, stretches.size()));
      const std::int64_t end = begin + std::llround(stretches[i].length.value);
      for (std::int64_t t = begin; t < end; ++t) CHECK(alive_at(all, seconds(t)) == least);
      begin = end;
    }
  }
}

// F is a forward of 1 s, BB a backward of 2 s, "." a wait. A stage rises with each forward before its first backward,
// and in that by the layer's gradients; each of its last backwards gives back what one of these forwards left.
TEST_CASE("two and four stages, by hand") {
  const Pipeline two(2, 1, 2);
  CHECK(two.rises(0) == Times{0, 1, 4});  // F F . . BB . BB
  CHECK(two.falls(0) == Times{9, 6});
  CHECK(two.rises(1) == Times{1, 2});  // . F BB F BB . .
  CHECK(two.falls(1) == Times{7});

  // Stage 1 of four, five micro-batches: . F F F . . . . BB F BB F BB . BB . BB . ., which is 24 s.
  const Pipeline four(4, 1, 5);
  CHECK(four.rises(1) == Times{1, 2, 3, 8});
  CHECK(four.falls(1) == Times{22, 19, 16});
  // The first stage: F F F F . . . . . . BB F BB . BB . BB . BB.
  CHECK(four.rises(0) == Times{0, 1, 2, 3, 10});
  CHECK(four.falls(0) == Times{24, 21, 18, 15});
  // The last: . . . and five times F BB, then six seconds of others.
  CHECK(four.rises(3) == Times{3, 4});
  CHECK(four.falls(3) == Times{18});

  // Fewer micro-batches than stages. Stage 1: . F F . . . . . BB . BB . ., where the gradient comes at 4 + 2 x 2.
  const Pipeline few(4, 1, 2);
  CHECK(few.rises(1) == Times{1, 2, 8});
  CHECK(few.falls(1) == Times{13, 10});
}

TEST_CASE("in a pipeline nothing is alive that the levels do not hold, whoever waits for whom") {
  for (const auto& [stages, virtual_stages, micro_batches] :
       std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{{1, 1, 1},
                                                                         {1, 1, 3},
                                                                         {2, 1, 4},
                                                                         {4, 1, 1},
                                                                         {4, 1, 3},
                                                                         {4, 1, 6},
                                                                         {2, 2, 4},
                                                                         {2, 2, 6},
                                                                         {4, 2, 8},
                                                                         {4, 2, 12},
                                                                         {6, 2, 12},
                                                                         {8, 3, 16}}) {
    const Pipeline pipeline(stages, virtual_stages, micro_batches);
    const PipelineClock clock(pipeline.job);
    REQUIRE(clock.end == Approx((pipeline.compute.forward + pipeline.compute.backward).value));
    for (std::int64_t p = 0; p < stages; ++p) {
      INFO(stages << " stages of " << virtual_stages << ", " << micro_batches << " micro-batches, stage " << p);
      const StageLayout layout = stage_layout(pipeline.job, p);
      const std::vector<ActivationLevel> levels = pipeline.levels(p);
      const std::vector<WalkedVisit> visits = walked(pipeline.job, layout);
      REQUIRE(visits.size() == clock.starts[p].size());
      Bytes peak{0};
      for (const WalkedVisit& visit : visits)
        for (const Pass& pass : visit.passes) peak = std::max(peak, pass.highest);
      const Bytes elsewhere = peak - sum_of(levels);  // hidden states that are always there
      // Virtual stages take turns of equal length, but for the output layer.
      const double slack = virtual_stages > 1 ? 0.03 : 1e-6;
      for (std::size_t v = 0; v < visits.size(); ++v) {
        double whole = 0;
        for (const Pass& pass : visits[v].passes) whole += pass.units;
        double at = clock.starts[p][v];
        const double length = visits[v].phase == Phase::forward ? clock.forward() : 2 * clock.forward();
        for (const Pass& pass : visits[v].passes) {
          const double until = at + length * pass.units / whole;
          for (const double moment : {at + slack, until - slack})
            if (moment > at && moment < until)
              CHECK(alive_at(levels, to_ticks(Seconds{moment})) + elsewhere >= pass.highest);
          at = until;
        }
      }
    }
  }
}

TEST_CASE("every job of the library: the levels hold what the walk does, and exactly what the footprint counts") {
  std::vector<Job> jobs;
  for (const std::string& name : library_names(Library::jobs)) jobs.push_back(load_job(name));
  jobs.push_back(load_job(std::string(EBB_SOURCE_DIR) + "/tests/gpu/replay-small-2gpu.yaml"));
  const std::size_t plain = jobs.size();
  for (std::size_t i = 0; i < plain; ++i) {
    Job recomputed = jobs[i];
    recomputed.recompute = {.granularity = RecomputeGranularity::full, .method = "uniform", .layers = 2, .modules = {}};
    jobs.push_back(recomputed);
    recomputed.recompute.method = "block";
    recomputed.measured.peak_remainder = 1_GiB;
    jobs.push_back(recomputed);
  }
  Job single = load_job("measured-1.8b-1xh200");
  single.batch.global = 1;
  jobs.push_back(single);
  single.model.layers = 1;
  jobs.push_back(single);
  for (const Job& job : jobs) {
    for (std::int64_t p = 0; p < job.parallel.pipeline; ++p) {
      INFO(job.name << ", stage " << p << ", " << job.recompute.method);
      const StageLayout layout = stage_layout(job, p);
      const ComputeTime compute = compute_time(job, p);
      const Footprint footprint = footprint_of(job, layout, Numel{0});
      const ActivationLevels curve = activation_levels(job, layout, compute, footprint);
      const Ticks total = curve.forward + curve.backward;
      CHECK(curve.forward == to_ticks(compute.forward));
      CHECK(curve.backward == to_ticks(compute.backward));
      CHECK(curve.levels.size() <= 48);
      CHECK(curve.levels.size() > 1);
      check_stack(curve.levels, total);
      CHECK(sum_of(curve.levels) == footprint.activations + footprint.logits);

      const std::vector<ActivationStretch> stretches = activation_stretches(job, layout, compute);
      const StageActivations alive = stage_activations(job, layout);
      const Bytes elsewhere =
          std::max(alive.saved + alive.turn - sum_of(curve.levels), Bytes{0});  // counted as always there
      double seconds = 0;
      Bytes peak{0};
      for (const ActivationStretch& stretch : stretches) {
        const Ticks middle = to_ticks(Seconds{seconds + stretch.length.value / 2});
        CHECK(alive_at(curve.levels, middle) + elsewhere >= stretch.highest);
        seconds += stretch.length.value;
        peak = std::max(peak, stretch.highest);
      }
      CHECK(peak == alive.saved + alive.turn);
      CHECK(seconds == Approx(to_seconds(total).value));
    }
  }
}
