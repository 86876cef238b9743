// How long it takes to say what torch's allocator will hold: the trace of a rank's allocations, and its replay.
#include <benchmark/benchmark.h>

#include <string>

#include "models/job_yaml.hpp"
#include "planner/ranks.hpp"
#include "planner/reserved.hpp"

namespace {

using namespace ebb;

void BM_reserved(benchmark::State& state, const char* name) {
  const Job job = load_job(std::string(EBB_SOURCE_DIR "/models/jobs/") + name + ".yaml");
  const RankSet ranks(job);
  const Candidate chunked{.policy = Policy::chunked, .chunk_numel = {1'000'000'000}};
  for (auto _ : state) benchmark::DoNotOptimize(predicted_memory(ranks.ranks().front(), chunked));
}
BENCHMARK_CAPTURE(BM_reserved, measured_1_8b, "measured-1.8b-1xh200")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_reserved, llama3_8b, "llama3-8b-hgx-h200")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_reserved, qwen3_30b_a3b, "qwen3-30b-a3b-hgx-h100")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_reserved, llama3_405b, "llama3-405b-gb200-nvl72")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_reserved, deepseek_v3, "deepseek-v3-2048xh200")->Unit(benchmark::kMillisecond);

}  // namespace
