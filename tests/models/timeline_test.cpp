// summarize: phases partition the step, both memory curves, ties in program order; a brute-force oracle.
#include "models/timeline.hpp"

#include <algorithm>
#include <random>

#include "models/live_meter.hpp"
#include "tests/catch.hpp"
#include "tests/sim/plan_builder.hpp"

using namespace ebb;
using test::PlanBuilder;

namespace {

constexpr Bytes kSmall{10};
constexpr Bytes kBig{1000};

Timeline timeline_of(const std::vector<std::pair<int, int>>& spans) {
  Timeline t;
  for (const auto& [start, end] : spans) {
    t.start.push_back({start});
    t.end.push_back({end});
  }
  return t;
}

}  // namespace

TEST_CASE("summary: of nothing") {
  PlanBuilder b;
  b.buffer(kBig, Memory::device, true);
  b.buffer(kSmall, Memory::pinned, true);
  const StepSummary s = summarize(b.take(), Timeline{});
  REQUIRE(s.phases.empty());
  REQUIRE(s.total.value == 0);
  REQUIRE(s.peak_allocated == kBig);
  REQUIRE(s.pinned == kSmall);
}

TEST_CASE("summary: phases follow each other by their last ends, in order of appearance") {
  PlanBuilder b;
  const StreamId stream = b.stream(StreamKind::compute);
  const StreamId comm = b.stream(StreamKind::comm);
  b.compute(stream, {}, {}, Phase::forward);
  b.compute(stream, {}, {}, Phase::backward);
  b.compute(comm, {}, {}, Phase::forward);  // a straggler of forward
  b.compute(stream, {}, {}, Phase::step);
  const StepSummary s = summarize(b.take(), timeline_of({{0, 10}, {10, 30}, {5, 18}, {30, 37}}));
  REQUIRE(s.phases.size() == 3);
  REQUIRE(s.phases[0].phase == Phase::forward);
  REQUIRE(s.phases[0].duration.value == 18);
  REQUIRE(s.phases[1].phase == Phase::backward);
  REQUIRE(s.phases[1].duration.value == 12);
  REQUIRE(s.phases[2].phase == Phase::step);
  REQUIRE(s.phases[2].duration.value == 7);
  REQUIRE(s.total.value == 37);
}

TEST_CASE("summary: a phase overtaken by an earlier one has no time of its own") {
  PlanBuilder b;
  const StreamId stream = b.stream(StreamKind::compute);
  const StreamId out = b.stream(StreamKind::d2h);
  b.d2h(out, 1);  // step, still moving while ...
  b.compute(stream, {}, {}, Phase::gather);
  const StepSummary s = summarize(b.take(), timeline_of({{0, 50}, {0, 20}}));
  REQUIRE(s.phases[0].duration.value == 50);
  REQUIRE(s.phases[1].duration.value == 0);
  REQUIRE(s.total.value == 50);
}

TEST_CASE("summary: a release counts when issued, storage is held until `after` has ended") {
  PlanBuilder b;
  const StreamId host = b.stream(StreamKind::host);
  const StreamId out = b.stream(StreamKind::d2h);
  const BufferId first = b.buffer(kBig);
  const BufferId second = b.buffer(kBig);
  b.allocate(host, first);
  const OpId copy = b.d2h(out, 1);
  b.release(host, first, copy);
  b.allocate(host, second);
  b.release(host, second);
  // The copy ends at 50; the second buffer comes at 20.
  const StepSummary s = summarize(b.take(), timeline_of({{0, 0}, {0, 50}, {10, 10}, {20, 20}, {60, 60}}));
  REQUIRE(s.peak_allocated == kBig);
  REQUIRE(s.peak_held == kBig * 2);
}

TEST_CASE("summary: `after` that ended before the release changes nothing") {
  PlanBuilder b;
  const StreamId host = b.stream(StreamKind::host);
  const BufferId first = b.buffer(kBig);
  const BufferId second = b.buffer(kBig);
  const OpId early = b.allocate(host, first);
  b.release(host, first, early);
  b.allocate(host, second);
  const StepSummary s = summarize(b.take(), timeline_of({{0, 0}, {10, 10}, {10, 10}}));
  REQUIRE(s.peak_allocated == kBig);
  REQUIRE(s.peak_held == kBig);
}

TEST_CASE("summary: at one tick, program order decides whether a release makes room") {
  for (const bool release_first : {true, false}) {
    PlanBuilder b;
    const StreamId host = b.stream(StreamKind::host);
    const BufferId old = b.buffer(kBig, Memory::device, true);
    const BufferId fresh = b.buffer(kBig);
    if (release_first) b.release(host, old);
    b.allocate(host, fresh);
    if (!release_first) b.release(host, old);
    const StepSummary s = summarize(b.take(), timeline_of({{5, 5}, {5, 5}}));
    REQUIRE(s.peak_allocated == kBig * (release_first ? 1 : 2));
    REQUIRE(s.peak_held == s.peak_allocated);
  }
}

TEST_CASE("summary: the tick between two phases belongs to the ops of each") {
  PlanBuilder b;
  const StreamId host = b.stream(StreamKind::host);
  const BufferId activations = b.buffer(kBig, Memory::device, true);
  const BufferId window = b.buffer(kSmall);
  b.compute(host, {}, {}, Phase::backward);
  b.release(host, activations, OpId::none(), {}, Phase::backward);
  b.allocate(host, window, {}, Phase::step);
  b.compute(host, {}, {}, Phase::step);
  const StepSummary s = summarize(b.take(), timeline_of({{0, 10}, {10, 10}, {10, 10}, {10, 20}}));
  REQUIRE(s.phases[0].peak_allocated == kBig);
  REQUIRE(s.phases[1].peak_allocated == kSmall);
}

TEST_CASE("summary: what is alive when a phase begins counts, though the phase releases it") {
  PlanBuilder b;
  const StreamId host = b.stream(StreamKind::host);
  const BufferId window = b.buffer(kBig);
  b.allocate(host, window, {}, Phase::forward);
  b.release(host, window, OpId::none(), {}, Phase::backward);
  const StepSummary s = summarize(b.take(), timeline_of({{0, 0}, {7, 7}}));
  REQUIRE(s.phases[0].peak_allocated == kBig);
  REQUIRE(s.phases[1].peak_allocated == kBig);
}

TEST_CASE("summary: host memory is taken at the peak of pinned and pageable together") {
  PlanBuilder b;
  const StreamId host = b.stream(StreamKind::host);
  b.buffer({1}, Memory::pinned, true);
  const BufferId pinned = b.buffer({100}, Memory::pinned);
  const BufferId pageable = b.buffer({300}, Memory::pageable);
  b.allocate(host, pinned);
  b.release(host, pinned);
  b.allocate(host, pageable);
  const StepSummary s = summarize(b.take(), timeline_of({{0, 0}, {5, 5}, {6, 6}}));
  REQUIRE(s.pinned.value == 1);
  REQUIRE(s.pageable.value == 300);
  REQUIRE(s.peak_allocated.value == 0);
}

TEST_CASE("summary: agrees with looking at every moment, on random plans") {
  std::mt19937 random(9);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::vector<MemoryEvent> scratch;
  StepSummary s;
  for (int round = 0; round < 500; ++round) {
    PlanBuilder b;
    const StreamId host = b.stream(StreamKind::host);
    std::vector<std::pair<int, int>> spans;
    std::vector<BufferId> alive;
    int now = 0;
    const int ops = pick(1, 40);
    for (int i = 0; i < ops; ++i) {
      const auto phase = static_cast<Phase>(3 + 4 * i / ops);  // forward to step
      if (!alive.empty() && pick(0, 2) == 0) {
        const OpId after = pick(0, 1) == 0 ? OpId{static_cast<std::uint32_t>(pick(0, i - 1))} : OpId::none();
        b.release(host, alive.back(), after, {}, phase);
        alive.pop_back();
        spans.emplace_back(now, now);
      } else if (pick(0, 1) == 0) {
        alive.push_back(b.buffer({pick(1, 1000)}));
        b.allocate(host, alive.back(), {}, phase);
        spans.emplace_back(now, now);
      } else {
        b.compute(host, {}, {}, phase);
        spans.emplace_back(now, now + pick(0, 3));
      }
      if (pick(0, 1) == 0) now += pick(0, 3);
    }
    const Plan plan = b.take();
    const Timeline t = timeline_of(spans);
    summarize(plan, t, scratch, s);

    // Buffer by buffer at (tick, op) for every op's tick and every op as the tie-breaker.
    std::int64_t allocated_peak = 0;
    std::int64_t held_peak = 0;
    for (const Ticks tick : t.end) {
      for (std::uint32_t upto = 0; upto < plan.ops.size(); ++upto) {
        const auto passed = [&](Ticks when, std::uint32_t op) { return when < tick || (when == tick && op <= upto); };
        std::int64_t allocated = 0;
        std::int64_t held = 0;
        for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
          const Op& op = plan.ops[i];
          if (op.kind != OpKind::allocate && op.kind != OpKind::release) continue;
          const std::int64_t bytes = plan.buffers[op.buffer.index].bytes.value;
          if (op.kind == OpKind::allocate && passed(t.start[i], i)) {
            allocated += bytes;
            held += bytes;
          }
          if (op.kind == OpKind::release && passed(t.end[i], i)) {
            allocated -= bytes;
            const Ticks back = op.after.valid() ? std::max(t.end[i], t.end[op.after.index]) : t.end[i];
            if (passed(back, i)) held -= bytes;
          }
        }
        allocated_peak = std::max(allocated_peak, allocated);
        held_peak = std::max(held_peak, held);
      }
    }
    REQUIRE(s.peak_allocated.value == allocated_peak);
    REQUIRE(s.peak_held.value == held_peak);
    Ticks sum{0};
    for (const PhaseSummary& phase : s.phases) {
      REQUIRE(phase.duration.value >= 0);
      REQUIRE(phase.peak_held >= phase.peak_allocated);
      sum += phase.duration;
    }
    REQUIRE(sum == s.total);
    REQUIRE(s.total == *std::max_element(t.end.begin(), t.end.end()));
  }
}

// By hand: 10 alive; forward allocates 5; finalize's 7 are issued before a release of backward's ops is reached.
TEST_CASE("live bytes by phase count in the order of issue") {
  LiveMeter meter({10});
  meter.enter(Phase::forward);
  meter.change({5});
  meter.enter(Phase::backward);
  meter.change({-12});
  meter.enter(Phase::finalize);
  meter.change({7});
  meter.enter(Phase::backward);
  meter.change({-1});
  using Phases = std::vector<std::pair<Phase, Bytes>>;
  CHECK(meter.by_phase() == Phases{{Phase::forward, {15}}, {Phase::backward, {15}}, {Phase::finalize, {10}}});
  CHECK(meter.peak() == Bytes{15});
}
