// How long an answer takes: the whole of `ebb plan` but for reading the job, and its parts. Time itself is not tested;
// run it on a quiet machine, in a release build.
#include <benchmark/benchmark.h>

#include <string>

#include "models/job_yaml.hpp"
#include "models/library.hpp"
#include "models/model_yaml.hpp"
#include "planner/candidates.hpp"
#include "planner/constraints.hpp"
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

Job on_eight_gpus(const char* model, std::int64_t tensor) {
  Job job = library_job("llama3-8b-hgx-h200");
  job.model = load_model(library_path(Library::models, model));
  job.parallel.tensor = tensor;
  check(job);
  return job;
}

/// The whole search on eight GPUs: where all ranks fold into one (tensor parallel), and where four and all eight are
/// unlike (data parallel). `classes`: ranks simulated a candidate; `candidates`: how many there are to choose from.
void BM_search(benchmark::State& state, const char* model, std::int64_t tensor) {
  const Job job = on_eight_gpus(model, tensor);
  for (auto _ : state) benchmark::DoNotOptimize(search(job, {}));
  const RankSet ranks(job);
  const HostSet hosts(job, ranks);
  state.counters["classes"] = static_cast<double>(hosts.hosts().front().models.size());
  state.counters["tensors"] = static_cast<double>(ranks.ranks().front().shards.size());
  state.counters["candidates"] = static_cast<double>(candidates_of(job, Evaluator(job).deciding_shards()).size());
}
BENCHMARK_CAPTURE(BM_search, folded_llama3_8b, "llama3-8b", 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_search, distinct_llama3_8b, "llama3-8b", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_search, distinct_deepseek_v2_lite, "deepseek-v2-lite", 1)->Unit(benchmark::kMillisecond);

/// 400 of these candidates, each simulated on the whole host and none pruned: what the search saves.
void BM_400_candidates(benchmark::State& state, const char* model, std::int64_t tensor) {
  const Job job = on_eight_gpus(model, tensor);
  Evaluator evaluator(job);
  const std::vector<Candidate> all = candidates_of(job, evaluator.deciding_shards());
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < 400; ++i) candidates.push_back(all[i * all.size() / 400]);
  for (auto _ : state)
    for (const Candidate& candidate : candidates) benchmark::DoNotOptimize(evaluator.answer(candidate));
  state.SetItemsProcessed(state.iterations() * 400);
}
BENCHMARK_CAPTURE(BM_400_candidates, folded_llama3_8b, "llama3-8b", 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_400_candidates, distinct_llama3_8b, "llama3-8b", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_400_candidates, distinct_deepseek_v2_lite, "deepseek-v2-lite", 1)->Unit(benchmark::kMillisecond);

}  // namespace
