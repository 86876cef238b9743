// How many ops a second the simulator and the summary do on one core. `items_per_second` counts ops of the plan.
#include <benchmark/benchmark.h>

#include "models/timeline.hpp"
#include "sim/simulator.hpp"
#include "tests/sim/plan_builder.hpp"

using namespace ebb;

namespace {

constexpr std::int64_t kChunk = 4 << 20;

void report(benchmark::State& state, const Plan& plan) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(plan.ops.size()));
}

void simulate_repeatedly(benchmark::State& state, const Plan& plan) {
  const Cluster cluster = test::h200_host();
  sim::Simulator simulator;
  Timeline timeline;
  for (auto _ : state) {
    simulator.run(plan, cluster, {.ranks_per_host = 8}, timeline);
    benchmark::DoNotOptimize(timeline.end.data());
  }
  report(state, plan);
}

/// In, Adam, out per chunk through two slots: both engines and all three streams busy. Argument: chunks.
void BM_simulate_pipelined(benchmark::State& state) {
  simulate_repeatedly(state, test::chunked_step(state.range(0) * kChunk, kChunk, 2));
}
BENCHMARK(BM_simulate_pipelined)->Arg(16)->Arg(100)->Arg(667)->Arg(10'000);

/// The same through one slot: one op at a time.
void BM_simulate_serial(benchmark::State& state) {
  simulate_repeatedly(state, test::chunked_step(state.range(0) * kChunk, kChunk, 1));
}
BENCHMARK(BM_simulate_serial)->Arg(16)->Arg(100)->Arg(667)->Arg(10'000);

/// Each chunk's window allocated on the host stream before it comes and released after it has left, with host calls and
/// a wait: the shape of a framework's own chunked step. Eight ops a chunk.
Plan framework_step(std::int64_t chunks) {
  test::PlanBuilder b;
  const StreamId host = b.stream(StreamKind::host);
  const StreamId in = b.stream(StreamKind::h2d);
  const StreamId compute = b.stream(StreamKind::compute);
  const StreamId out = b.stream(StreamKind::d2h);
  for (std::int64_t c = 0; c < chunks; ++c) {
    const BufferId window = b.buffer({12 * kChunk});
    b.host(host, Work::chunk_overhead);
    const OpId made = b.allocate(host, window);
    const OpId arrived = b.h2d(in, 12 * kChunk, {made}, 9);
    const OpId updated = b.adam(compute, kChunk, {arrived});
    const OpId left = b.d2h(out, 12 * kChunk, {updated}, 9);
    b.host(host, Work::launch, 19);
    b.add(test::PlanBuilder::op(OpKind::host_wait, host), {left});
    b.release(host, window, left);
  }
  return b.take();
}

void BM_simulate_framework(benchmark::State& state) { simulate_repeatedly(state, framework_step(state.range(0))); }
BENCHMARK(BM_simulate_framework)->Arg(6)->Arg(36)->Arg(250);

void BM_summarize(benchmark::State& state) {
  const Plan plan = framework_step(state.range(0));
  const Timeline timeline = sim::simulate(plan, test::h200_host(), {});
  std::vector<MemoryEvent> scratch;
  StepSummary summary;
  for (auto _ : state) {
    summarize(plan, timeline, scratch, summary);
    benchmark::DoNotOptimize(summary.peak_held);
  }
  report(state, plan);
}
BENCHMARK(BM_summarize)->Arg(6)->Arg(36)->Arg(250);

}  // namespace
