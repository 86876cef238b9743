// Hosts of a job: which differ, which ranks they carry, and that a job of 16,384 GPUs is one call.
#include "planner/hosts.hpp"

#include <algorithm>
#include <set>

#include "models/job_yaml.hpp"
#include "planner/constraints.hpp"
#include "planner/evaluator.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

Job library_job(const std::string& name) {
  return load_job(std::string(EBB_SOURCE_DIR "/models/jobs/") + name + ".yaml");
}

Job sixteen_thousand_gpus() {
  Job job = library_job("llama3-405b-gb200-nvl72");
  job.parallel.gpus = 16'384;
  job.parallel.pipeline = 2;  // 126 layers
  job.parallel.virtual_pipeline = 1;
  job.batch.global = 16'384;
  check(job);
  return job;
}

}  // namespace

TEST_CASE("hosts: every rank is on a host of the set, at its place, with its model") {
  for (const char* name : {"llama3-8b-hgx-h200", "mixtral-8x7b-hgx-h200", "deepseek-v2-lite-4xgh200",
                           "qwen3-8b-rtxpro6000", "measured-1.8b-1xh200", "llama3-70b-hgx-h200"}) {
    INFO(name);
    const Job job = library_job(name);
    const RankSet ranks(job);
    const HostSet hosts(job, ranks);
    const std::int64_t per_host = std::min(job.cluster.gpus_per_host, job.parallel.gpus);
    std::set<std::vector<std::size_t>> kinds;
    for (std::int64_t first = 0; first < job.parallel.gpus; first += per_host) {
      std::vector<std::size_t> models;
      for (std::int64_t rank = first; rank < first + per_host; ++rank) models.push_back(ranks.model_of(rank));
      kinds.insert(models);
    }
    REQUIRE(hosts.hosts().size() == kinds.size());
    for (const HostModel& host : hosts.hosts()) {
      std::vector<std::size_t> models;
      for (const std::uint32_t cls : host.class_of_place) models.push_back(host.models[cls]);
      CHECK(kinds.contains(models));
      for (std::size_t place = 0; place < models.size(); ++place)
        CHECK(models[place] == ranks.model_of(host.first_rank + static_cast<std::int64_t>(place)));
    }
    for (std::size_t model = 0; model < ranks.ranks().size(); ++model) {
      const auto& on = hosts.hosts()[hosts.host_of(model)].models;
      CHECK(std::find(on.begin(), on.end(), model) != on.end());
    }
  }
}

TEST_CASE("hosts: data-parallel ranks with different shards are simulated apart, equal ones once") {
  const Job unequal = library_job("llama3-8b-hgx-h200");
  const RankSet unequal_ranks(unequal);
  const HostSet unequal_hosts(unequal, unequal_ranks);
  CHECK(unequal_ranks.ranks().size() == 3);                 // the first, the last, and six alike between them:
  CHECK(unequal_hosts.hosts().front().models.size() == 4);  // three beside the first in a socket, three beside the last
  Job equal = library_job("llama3-8b-hgx-h200");
  equal.parallel.tensor = 8;
  check(equal);
  const RankSet equal_ranks(equal);
  const HostSet hosts(equal, equal_ranks);
  REQUIRE(hosts.hosts().size() == 1);
  CHECK(hosts.hosts().front().alike());
}

TEST_CASE("hosts: 16,384 GPUs in one call, the same as all their distinct hosts") {
  const Job job = sixteen_thousand_gpus();
  Evaluator evaluator(job);
  for (const Candidate& candidate : {Candidate{}, Candidate{.policy = Policy::chunked, .chunk_numel = {100'000'000}},
                                     Candidate{.policy = Policy::windowed, .chunk_size_mb = 128}}) {
    const Answer answer = evaluator.answer(candidate);
    const Answer all = evaluator.answer_of_all_hosts(candidate);
    CHECK(answer.step.value > 0);
    CHECK(answer.step.value == Approx(all.step.value).epsilon(1e-4));
    CHECK(answer.device_peak.value == all.device_peak.value);
  }
}
