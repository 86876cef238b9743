// How long an answer takes: the whole of `ebb plan` but for reading the job, and its parts. Time itself is not tested;
// run it on a quiet machine, in a release build.
#include <benchmark/benchmark.h>

#include <string>

#include "models/job_yaml.hpp"
#include "planner/candidates.hpp"
#include "planner/evaluator.hpp"
#include "planner/search.hpp"

namespace {

using namespace ebb;

Job library_job(const char* name) { return load_job(std::string(EBB_SOURCE_DIR "/models/jobs/") + name + ".yaml"); }

void BM_plan(benchmark::State& state, const char* name) {
  const Job job = library_job(name);
  for (auto _ : state) benchmark::DoNotOptimize(search(job, {}));
}
BENCHMARK_CAPTURE(BM_plan, measured_1_8b, "measured-1.8b-1xh200")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_plan, llama3_8b, "llama3-8b-hgx-h200")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_plan, deepseek_v2_lite_4_gpus, "deepseek-v2-lite-4xgh200")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_plan, deepseek_v3_2048_gpus, "deepseek-v3-2048xh200")->Unit(benchmark::kMillisecond);

/// Candidates a second: bounded in closed form, simulated on the deciding ranks, simulated on all that can decide.
enum class Depth { bound, probe, answer };

void BM_candidates(benchmark::State& state, const char* name, Depth depth) {
  const Job job = library_job(name);
  Evaluator evaluator(job);
  const std::vector<Candidate> candidates = candidates_of(job, evaluator.deciding_shards());
  std::size_t next = 0;
  for (auto _ : state) {
    const Candidate& candidate = candidates[next++ % candidates.size()];
    if (depth == Depth::bound) benchmark::DoNotOptimize(evaluator.bound(candidate));
    if (depth == Depth::probe) benchmark::DoNotOptimize(evaluator.probe(candidate));
    if (depth == Depth::answer) benchmark::DoNotOptimize(evaluator.answer(candidate));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(BM_candidates, llama3_8b_bound, "llama3-8b-hgx-h200", Depth::bound);
BENCHMARK_CAPTURE(BM_candidates, llama3_8b_probe, "llama3-8b-hgx-h200", Depth::probe);
BENCHMARK_CAPTURE(BM_candidates, llama3_8b_answer, "llama3-8b-hgx-h200", Depth::answer);
BENCHMARK_CAPTURE(BM_candidates, deepseek_v3_bound, "deepseek-v3-2048xh200", Depth::bound);
BENCHMARK_CAPTURE(BM_candidates, deepseek_v3_probe, "deepseek-v3-2048xh200", Depth::probe);
BENCHMARK_CAPTURE(BM_candidates, deepseek_v3_answer, "deepseek-v3-2048xh200", Depth::answer);

}  // namespace
