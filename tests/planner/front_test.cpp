// The front of memory against time: complete (against evaluating everything), and by hand on made-up answers.
#include "planner/front.hpp"

#include <algorithm>

#include "models/job_yaml.hpp"
#include "planner/constraints.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

Job library_job(const std::string& name) { return load_job(EBB_SOURCE_DIR "/models/jobs/" + name + ".yaml"); }

Answer answer(std::int64_t reserved_gib, double slowdown, bool deployable = true, bool fits_host = true) {
  Answer a;
  a.candidate.policy = Policy::chunked;
  a.candidate.chunk_numel = {reserved_gib};
  a.step = {slowdown};
  a.slowdown = slowdown;
  a.device_reserved = a.device_peak = Bytes{reserved_gib << 30};
  a.deployable = deployable;
  a.fits_host = fits_host;
  return a;
}

std::vector<std::int64_t> gib_of(const std::vector<Answer>& front) {
  std::vector<std::int64_t> list;
  for (const Answer& a : front) list.push_back(a.device_reserved.value >> 30);
  return list;
}

std::vector<Candidate> candidates_in(const std::vector<Answer>& answers) {
  std::vector<Candidate> list;
  for (const Answer& a : answers) list.push_back(a.candidate);
  return list;
}

/// Every candidate evaluated, none pruned; the front of these; the replay of their allocators; the front of those.
std::vector<Candidate> exhaustive_front(const Job& job, Megatron megatron) {
  Answers answers(job, megatron);
  std::vector<Answer> all;
  for (const Policy policy : kPolicies)
    for (const Family& family : answers.families(policy))
      for (const Candidate& candidate : family) all.push_back(answers.of(candidate));
  std::vector<Answer> front = front_of(std::move(all), job.offload.policy);
  for (Answer& a : front) answers.evaluator().replay_allocator(a);
  return candidates_in(front_of(std::move(front), job.offload.policy));
}

}  // namespace

TEST_CASE("what another candidate beats in memory and time is not on the front") {
  CHECK(gib_of(front_of({answer(40, 1.0), answer(30, 1.2), answer(35, 1.3), answer(20, 1.5)}, {})) ==
        std::vector<std::int64_t>{20, 30, 40});
  // As fast, to a thousandth: the one that needs less.
  CHECK(gib_of(front_of({answer(30, 1.2001), answer(29, 1.2009)}, {})) == std::vector<std::int64_t>{29});
}

TEST_CASE("what cannot be chosen hides nothing that can") {
  CHECK(gib_of(front_of({answer(30, 1.2), answer(25, 1.1, false), answer(35, 1.15, false)}, {})) ==
        std::vector<std::int64_t>{25, 30});
  CHECK(gib_of(front_of({answer(30, 1.2), answer(25, 1.1, true, false)}, {})) == std::vector<std::int64_t>{25, 30});
  // Where the job names a policy, resident can be shown but not chosen.
  std::vector<Answer> answers = {answer(30, 1.2), answer(25, 1.0)};
  answers[1].candidate = {};
  CHECK(gib_of(front_of(answers, {})) == std::vector<std::int64_t>{25});
  CHECK(gib_of(front_of(answers, Policy::chunked)) == std::vector<std::int64_t>{25, 30});
}

TEST_CASE("the front of a search is that of evaluating every candidate") {
  Job sharded = library_job("llama3.2-1b-rtx4090");
  sharded.parallel.gpus = 2;
  sharded.batch.global = 2 * sharded.batch.micro;
  check(sharded);
  Job poor = library_job("measured-1.8b-1xh200");
  poor.budget.host = 12_GiB;
  Job fixed = library_job("measured-1.8b-1xh200");
  fixed.offload.policy = Policy::windowed;
  for (const Job& job : {library_job("measured-1.8b-1xh200"), sharded, poor, fixed})
    for (const Megatron megatron : {Megatron::any, Megatron::main}) {
      INFO(job.name << " with Megatron " << name_of(megatron));
      const std::vector<Answer> front = search(job, {.megatron = megatron, .cures = false, .front = true}).front;
      CHECK(front.size() >= 3);
      CHECK(candidates_in(front) == exhaustive_front(job, megatron));
    }
}

TEST_CASE("the recommended answer of a job whose budget binds is on its front") {
  Job job = library_job("measured-1.8b-1xh200");
  for (const std::int64_t gib : {22, 26, 30, 34}) {
    job.budget.device = Bytes{gib << 30};
    const SearchResult result = search(job, {.cures = false, .front = true});
    REQUIRE(result.recommended);
    const std::vector<Candidate> front = candidates_in(result.front);
    const Candidate& pick = result.candidates[*result.recommended].candidate;
    INFO(gib << " GiB: " << name_of(pick.policy));
    CHECK(std::find(front.begin(), front.end(), pick) != front.end());
  }
}
