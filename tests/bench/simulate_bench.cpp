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

/// Eight GPUs of one host that share it, each through two slots. Argument: chunks. `distinct`: chunks of a different
/// size on each, so that no two are ever in step; otherwise all alike, and simulated one by one all the same.
void simulate_host(benchmark::State& state, bool distinct) {
  constexpr std::uint32_t kGpus = 8;
  std::vector<Plan> plans;
  sim::HostRuns host;
  std::int64_t ops = 0;
  for (std::uint32_t gpu = 0; gpu < kGpus; ++gpu) {
    const std::int64_t chunk = kChunk + (distinct ? gpu * (kChunk / 61) : 0);
    plans.push_back(test::chunked_step(state.range(0) * chunk, chunk, 2));
    ops += static_cast<std::int64_t>(plans.back().ops.size());
  }
  for (std::uint32_t gpu = 0; gpu < kGpus; ++gpu) {
    host.plans.push_back(&plans[gpu]);
    host.class_of_place.push_back(gpu);
  }
  Cluster cluster = test::h200_host();
  cluster.gpus_per_host = kGpus;
  cluster.host_link.host_one_way.value = {420e9};
  cluster.host_link.host_both.value = {548e9};
  sim::Simulator simulator;
  std::vector<Timeline> timelines;
  for (auto _ : state) {
    simulator.run(host, cluster, timelines);
    benchmark::DoNotOptimize(timelines.data());
  }
  state.SetItemsProcessed(state.iterations() * ops);
}
void BM_simulate_8_gpus_distinct(benchmark::State& state) { simulate_host(state, true); }
BENCHMARK(BM_simulate_8_gpus_distinct)->Arg(100)->Arg(1000);
void BM_simulate_8_gpus_in_step(benchmark::State& state) { simulate_host(state, false); }
BENCHMARK(BM_simulate_8_gpus_in_step)->Arg(100)->Arg(1000);

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
