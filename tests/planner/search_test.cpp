// Search: pruning changes nothing, bounds are bounds, few ranks stand for all, budgets decide as the rule says, and the
// measured job comes out as measured.
#include "planner/search.hpp"

#include <algorithm>

#include "models/job_yaml.hpp"
#include "planner/candidates.hpp"
#include "planner/constraints.hpp"
#include "planner/evaluator.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

Job library_job(const std::string& name) { return load_job(EBB_SOURCE_DIR "/models/jobs/" + name + ".yaml"); }

/// Llama-3.2 1B on two GPUs of one host: small, sharded, with bucketed gradients.
Job small_sharded_job() {
  Job job = library_job("llama3.2-1b-rtx4090");
  job.parallel.gpus = 2;
  job.batch.global = 2 * job.batch.micro;
  check(job);
  return job;
}

std::vector<Candidate> candidates_in(const SearchResult& result) {
  std::vector<Candidate> list;
  for (const Answer& answer : result.candidates) list.push_back(answer.candidate);
  return list;
}

const Answer* find(const SearchResult& result, const Candidate& candidate) {
  for (const Answer& answer : result.candidates)
    if (answer.candidate == candidate) return &answer;
  return nullptr;
}

void require_same_result(Job job, Bytes budget) {
  job.budget.device = budget;
  const SearchResult pruned = search(job, {.cures = false});
  const SearchResult exhaustive = search(job, {.exhaustive = true, .cures = false});
  INFO(job.name << " with " << budget.value << " bytes");
  REQUIRE(candidates_in(pruned) == candidates_in(exhaustive));
  REQUIRE(pruned.recommended == exhaustive.recommended);
}

}  // namespace

TEST_CASE("pruning by bounds gives the rows and the recommendation of evaluating everything") {
  const Job measured = library_job("measured-1.8b-1xh200");
  for (const std::int64_t gib : {12, 21, 22, 23, 25, 28, 30, 33, 36, 39, 42, 60})
    require_same_result(measured, Bytes{gib << 30});
  const Job sharded = small_sharded_job();
  for (const std::int64_t gib : {8, 12, 16, 18, 20, 24}) require_same_result(sharded, Bytes{gib << 30});
}

TEST_CASE("no answer is below its bound, and no probe either") {
  for (const Job& job :
       {library_job("measured-1.8b-1xh200"), small_sharded_job(), library_job("mixtral-8x7b-hgx-h200")}) {
    Evaluator evaluator(job);
    const std::vector<Candidate> all = candidates_of(job, evaluator.deciding_shards());
    const std::size_t stride = std::max<std::size_t>(1, all.size() / 150);
    for (std::size_t i = 0; i < all.size(); i += stride) {
      INFO(job.name << " " << name_of(all[i].policy) << " N " << all[i].chunk_numel.value << " MB "
                    << all[i].chunk_size_mb << " fraction " << all[i].fraction << " slots " << all[i].slots);
      const Bound bound = evaluator.bound(all[i]);
      const Bound probe = evaluator.probe(all[i]);
      const Answer answer = evaluator.answer(all[i]);
      CHECK(bound.step <= probe.step);
      CHECK(bound.reserved <= probe.reserved);
      CHECK(probe.step <= answer.step);
      CHECK(probe.reserved <= answer.device_reserved);
    }
  }
}

TEST_CASE("no answer is below its bound where gradients are still being reduced when state returns") {
  Job job = library_job("llama3-8b-hgx-h200");
  job.parallel.gpus = 16;
  job.batch.global = 16;
  job.batch.sequence = 512;
  job.cluster.interconnect.network.value = {12e9};
  check(job);
  Evaluator evaluator(job);
  const std::vector<Candidate> all = candidates_of(job, evaluator.deciding_shards());
  for (std::size_t i = 0; i < all.size(); i += std::max<std::size_t>(1, all.size() / 150)) {
    INFO(name_of(all[i].policy) << " N " << all[i].chunk_numel.value << " MB " << all[i].chunk_size_mb << " fraction "
                                << all[i].fraction << " slots " << all[i].slots);
    const Answer answer = evaluator.answer(all[i]);
    CHECK(evaluator.bound(all[i]).step <= answer.step);
    CHECK(evaluator.probe(all[i]).step <= answer.step);
  }
}

TEST_CASE("the ranks that are simulated decide like all ranks, at fractions too") {
  Job job = library_job("mixtral-8x7b-hgx-h200");
  Evaluator evaluator(job);
  for (const double fraction : {0.05, 0.1, 0.2, 0.45, 0.8}) {
    for (const Candidate& candidate :
         {Candidate{.policy = Policy::cpu_adam, .fraction = fraction},
          Candidate{.policy = Policy::windowed, .chunk_size_mb = 64, .fraction = fraction}}) {
      const Answer few = evaluator.answer(candidate);
      const Answer all = evaluator.answer_of_all_hosts(candidate);
      INFO(name_of(candidate.policy) << " fraction " << fraction);
      CHECK(few.step.value == Approx(all.step.value).epsilon(2e-3));
      CHECK(few.device_reserved.value == Approx(static_cast<double>(all.device_reserved.value)).epsilon(2e-3));
    }
  }
}

TEST_CASE("the ranks that are simulated decide like all ranks") {
  Job job = library_job("mixtral-8x7b-hgx-h200");
  job.parallel.gpus = 32;
  job.batch.global = 32;
  check(job);
  Evaluator evaluator(job);
  for (const Candidate& candidate : {Candidate{}, Candidate{.policy = Policy::full_reload},
                                     Candidate{.policy = Policy::chunked, .chunk_numel = {100'000'000}},
                                     Candidate{.policy = Policy::chunked, .chunk_numel = {1'000'000'000}},
                                     Candidate{.policy = Policy::windowed, .chunk_size_mb = 256},
                                     Candidate{.policy = Policy::windowed, .chunk_size_mb = 512, .fraction = 0.5},
                                     Candidate{.policy = Policy::cpu_adam},
                                     Candidate{.policy = Policy::pipelined, .chunk_numel = {1 << 22}, .slots = 3}}) {
    const Answer few = evaluator.answer(candidate);
    const Answer all = evaluator.answer_of_all_hosts(candidate);
    INFO(name_of(candidate.policy));
    CHECK(few.device_peak.value == all.device_peak.value);
    CHECK(few.device_reserved.value == all.device_reserved.value);
    CHECK(few.step.value == Approx(all.step.value).epsilon(1e-4));
    CHECK(few.host_pinned_per_rank.value == all.host_pinned_per_rank.value);
  }
}

TEST_CASE("the answer follows the budget") {
  Job job = library_job("measured-1.8b-1xh200");
  const auto recommended = [&](Bytes budget, Megatron megatron) -> std::optional<Policy> {
    job.budget.device = budget;
    const SearchResult result = search(job, {.megatron = megatron, .cures = false});
    if (!result.recommended) return std::nullopt;
    const Answer& pick = result.candidates[*result.recommended];
    CHECK(pick.device_reserved <= budget);
    CHECK(pick.deployable);
    return pick.candidate.policy;
  };
  CHECK(recommended(60_GiB, Megatron::any) == Policy::resident);
  CHECK(recommended(22_GiB, Megatron::pr6544) == Policy::chunked);
  CHECK(recommended(22_GiB, Megatron::main) == Policy::cpu_adam);
  CHECK(recommended(32_GiB, Megatron::dev) == Policy::windowed);
  CHECK_FALSE(recommended(12_GiB, Megatron::any).has_value());
}

TEST_CASE("at most eight rows of Megatron's, the production size among them, Ebb's own last") {
  for (const char* name : {"measured-1.8b-1xh200", "llama3-8b-hgx-h200", "deepseek-v3-2048xh200"}) {
    const SearchResult result = search(library_job(name), {.cures = false});
    const auto own = std::find_if(result.candidates.begin(), result.candidates.end(),
                                  [](const Answer& answer) { return answer.requires_megatron == "ebb"; });
    CHECK(own - result.candidates.begin() <= 8);
    CHECK(own != result.candidates.end());
    CHECK(find(result, {.policy = Policy::chunked, .chunk_numel = kProductionNumel}) != nullptr);
    CHECK(result.candidates.front().candidate.policy == Policy::resident);
  }
}

TEST_CASE("a policy that the job fixes is the only one recommended") {
  Job job = library_job("measured-1.8b-1xh200");
  job.offload.policy = Policy::chunked;
  job.offload.chunk_numel = Numel{123'456'789};
  const SearchResult result = search(job, {.cures = false});
  REQUIRE(result.recommended);
  CHECK(result.candidates[*result.recommended].candidate ==
        Candidate{.policy = Policy::chunked, .chunk_numel = {123'456'789}});
}

TEST_CASE("when nothing fits, the shortfall is named and every cure is a job that works") {
  Job job = library_job("measured-1.8b-1xh200");
  job.budget.device = 12_GiB;
  const SearchResult result = search(job, {});
  REQUIRE_FALSE(result.recommended);
  CHECK(result.shortfall.find("too much") != std::string::npos);
  REQUIRE_FALSE(result.cures.empty());
  REQUIRE(result.cures.front().rfind("--budget ", 0) == 0);
  const std::string size = result.cures.front().substr(9, result.cures.front().find(' ', 9) - 9);
  job.budget.device = Bytes{static_cast<std::int64_t>(std::stod(size) * (1 << 30))};
  CHECK(search(job, {.cures = false}).recommended.has_value());
}

TEST_CASE("a host with little memory rules out what pins too much") {
  Job job = library_job("measured-1.8b-1xh200");
  job.budget.device = 22_GiB;
  job.budget.host = 1_GiB;
  CHECK_FALSE(search(job, {.cures = false}).recommended.has_value());
}

// Megatron-LM with 1,816,758,272 parameters on one H200 (driver 580.159, torch 2.11, 2026-11-30); MiB. Windowed with
// one window over everything reserves 52,806, which the bound reaches as well.
TEST_CASE("reserved memory of the measured job is bounded, not far above what was measured") {
  const Job job = library_job("measured-1.8b-1xh200");
  struct Run {
    Candidate candidate;
    std::int64_t reserved_mib;
  };
  const Run runs[] = {{{}, 41438},
                      {{.policy = Policy::full_reload}, 33578},
                      {{.policy = Policy::chunked, .chunk_numel = {100'000'000}}, 21012},
                      {{.policy = Policy::chunked, .chunk_numel = {400'000'000}}, 21012},
                      {{.policy = Policy::chunked, .chunk_numel = {1'000'000'000}}, 24628},
                      {{.policy = Policy::windowed, .chunk_size_mb = 64}, 27586},
                      {{.policy = Policy::windowed, .chunk_size_mb = 512}, 27588},
                      {{.policy = Policy::windowed, .chunk_size_mb = 0}, 52806},
                      {{.policy = Policy::cpu_adam}, 20608}};
  Evaluator evaluator(job);
  for (const Run& run : runs) {
    const double bound_mib = static_cast<double>(evaluator.answer(run.candidate).device_reserved.value) / (1 << 20);
    INFO(name_of(run.candidate.policy) << " N " << run.candidate.chunk_numel.value << " MB "
                                       << run.candidate.chunk_size_mb);
    CHECK(bound_mib >= static_cast<double>(run.reserved_mib));
    CHECK(bound_mib <= 1.15 * static_cast<double>(run.reserved_mib));
  }
}
