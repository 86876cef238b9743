// How long layouts take: one pipeline stage, one rank's shards, and all distinct ranks of a large job.
#include <benchmark/benchmark.h>

#include "planner/layout.hpp"
#include "tests/planner/layout_jobs.hpp"

namespace ebb {
namespace {

void BM_layout_stage_llama3_8b(benchmark::State& state) {
  const Job job = test::job(test::llama3_8b(), 8);
  for (auto _ : state) benchmark::DoNotOptimize(stage_layout(job, 0));
}
BENCHMARK(BM_layout_stage_llama3_8b);

void BM_layout_stage_deepseek_v3(benchmark::State& state) {
  const Job job = test::deepseek_v3_2048();
  for (auto _ : state) benchmark::DoNotOptimize(stage_layout(job, 1));
}
BENCHMARK(BM_layout_stage_deepseek_v3);

/// 256 local experts in 58 layers: the longest parameter list there is.
void BM_layout_stage_deepseek_v3_without_expert_parallelism(benchmark::State& state) {
  const Job job = test::job(test::deepseek_v3(), 8);
  for (auto _ : state) benchmark::DoNotOptimize(stage_layout(job, 0));
}
BENCHMARK(BM_layout_stage_deepseek_v3_without_expert_parallelism);

void BM_layout_rank_shards_deepseek_v3(benchmark::State& state) {
  const StageLayout stage = stage_layout(test::deepseek_v3_2048(), 1);
  for (auto _ : state) benchmark::DoNotOptimize(rank_shards(stage, 17, 1));
}
BENCHMARK(BM_layout_rank_shards_deepseek_v3);

void BM_layout_rank_shards_llama3_8b(benchmark::State& state) {
  const StageLayout stage = stage_layout(test::job(test::llama3_8b(), 8), 0);
  for (auto _ : state) benchmark::DoNotOptimize(rank_shards(stage, 7, 7));
}
BENCHMARK(BM_layout_rank_shards_llama3_8b);

/// Every rank of 2,048 GPUs, as a planner without symmetry would do it; items are ranks.
void BM_layout_all_ranks_deepseek_v3(benchmark::State& state) {
  const Job job = test::deepseek_v3_2048();
  for (auto _ : state) {
    std::vector<StageLayout> stages;
    for (std::int64_t p = 0; p < job.parallel.pipeline; ++p) stages.push_back(stage_layout(job, p));
    for (std::int64_t rank = 0; rank < job.parallel.gpus; ++rank) {
      const RankCoordinates at = coordinates_of(job, rank);
      const StageLayout& stage = stages[static_cast<std::size_t>(at.pipeline)];
      benchmark::DoNotOptimize(rank_shards(stage, at.dense_shard, at.expert_shard));
    }
  }
  state.SetItemsProcessed(state.iterations() * job.parallel.gpus);
}
BENCHMARK(BM_layout_all_ranks_deepseek_v3)->Unit(benchmark::kMillisecond);

void BM_layout_total_parameters_deepseek_v3(benchmark::State& state) {
  const ModelSpec model = test::deepseek_v3();
  for (auto _ : state) benchmark::DoNotOptimize(total_parameters(model));
}
BENCHMARK(BM_layout_total_parameters_deepseek_v3);

}  // namespace
}  // namespace ebb
