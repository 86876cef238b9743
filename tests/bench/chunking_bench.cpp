// How long packing and its breakpoints take: on a real rank, and on lists of unequal shards, where breakpoints are
// most numerous.
#include <benchmark/benchmark.h>

#include <random>

#include "planner/chunking.hpp"
#include "tests/planner/layout_jobs.hpp"

namespace ebb {
namespace {

std::vector<Shard> real_shards() { return rank_shards(stage_layout(test::job(test::llama3_8b(), 8), 0), 7, 7); }

std::vector<Shard> unequal_shards(std::int64_t count) {
  std::mt19937_64 random(1);
  std::vector<Shard> shards(static_cast<std::size_t>(count));
  for (Shard& shard : shards) shard.numel = Numel{static_cast<std::int64_t>(random() % 100'000'000 + 1)};
  return shards;
}

void BM_chunking_by_numel(benchmark::State& state) {
  const std::vector<Shard> shards = unequal_shards(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(chunk_by_numel(shards, Numel{1'000'000'000}));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_chunking_by_numel)->Arg(100)->Arg(10'000);

void BM_chunking_by_moments(benchmark::State& state) {
  const std::vector<Shard> shards = real_shards();
  for (auto _ : state) benchmark::DoNotOptimize(chunk_by_moments(shards, 512, 8));
}
BENCHMARK(BM_chunking_by_moments);

void BM_chunking_breakpoints_real(benchmark::State& state) {
  const std::vector<Shard> shards = real_shards();
  std::size_t found = 0;
  for (auto _ : state) found = numel_breakpoints(shards).size();
  state.counters["breakpoints"] = static_cast<double>(found);
}
BENCHMARK(BM_chunking_breakpoints_real)->Unit(benchmark::kMicrosecond);

void BM_chunking_breakpoints_unequal(benchmark::State& state) {
  const std::vector<Shard> shards = unequal_shards(state.range(0));
  std::size_t found = 0;
  for (auto _ : state) found = numel_breakpoints(shards).size();
  state.counters["breakpoints"] = static_cast<double>(found);
}
BENCHMARK(BM_chunking_breakpoints_unequal)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

void BM_chunking_breakpoints_mb_unequal(benchmark::State& state) {
  const std::vector<Shard> shards = unequal_shards(state.range(0));
  std::size_t found = 0;
  for (auto _ : state) found = moment_breakpoints_mb(shards, 8).size();
  state.counters["breakpoints"] = static_cast<double>(found);
}
BENCHMARK(BM_chunking_breakpoints_mb_unequal)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ebb
