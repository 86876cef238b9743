// `ebb fit` against trying every value.
#include "planner/fit.hpp"

#include <algorithm>

#include "models/job_yaml.hpp"
#include "planner/constraints.hpp"
#include "planner/fit_axis.hpp"
#include "tests/catch.hpp"

using namespace ebb;

namespace {

Job library_job(const std::string& name) { return load_job(EBB_SOURCE_DIR "/models/jobs/" + name + ".yaml"); }

Job small_job() {
  Job job = library_job("llama3.2-1b-rtx4090");
  job.budget.device = 20_GiB;
  return job;
}

/// By search alone, one value after another.
std::optional<std::int64_t> last_value(Job job, FitGoal goal, const std::vector<std::int64_t>& values, bool offload) {
  if (!offload) job.offload = {.policy = Policy::resident};
  std::optional<std::int64_t> last;
  for (const std::int64_t value : values) {
    const Job changed = with_value(job, goal, value);
    check(changed);
    if (search(changed, {.cures = false}).recommended) last = value;
  }
  return last;
}

std::vector<std::int64_t> values_of(const FitAxis& axis, std::int64_t most) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < axis.size() && axis.at(i) <= most; ++i) values.push_back(axis.at(i));
  return values;
}

void check_limit(const Job& job, FitGoal goal, std::int64_t most) {
  const FitResult result = fit(job, goal, Megatron::any);
  const FitAxis axis(job, goal);
  REQUIRE(result.limits.size() == 2);
  for (const FitLimit& limit : result.limits) {
    INFO(name_of(goal) << ", offload " << limit.offload);
    const std::optional<std::int64_t> expected = last_value(job, goal, values_of(axis, most), limit.offload);
    REQUIRE(limit.fits.has_value() == expected.has_value());
    if (!expected) continue;
    CHECK(limit.fits->value == *expected);
    CHECK(*expected < most);
    CHECK(limit.fits->answer->feasible());
    if (limit.breaks && limit.breaks->answer) CHECK_FALSE(limit.breaks->answer->feasible());
  }
}

}  // namespace

TEST_CASE("the largest values that fit are those of trying all") {
  check_limit(small_job(), FitGoal::layers, 40);
  Job job = small_job();
  job.batch.sequence = 1024;
  job.batch.global = 64;
  check_limit(job, FitGoal::micro_batch, 65);
  job.batch.micro = 1;
  job.budget.device = 18_GiB;
  check_limit(job, FitGoal::sequence, 12'288);
}

TEST_CASE("sequences are multiples of 128 x context ranks, layers what the pipeline splits, micro-batches divisors") {
  Job job = library_job("llama3-70b-hgx-h200");
  job.parallel.context = 2;
  job.parallel.gpus *= 2;
  check(job);
  const FitAxis sequences(job, FitGoal::sequence);
  CHECK(sequences.step() == 256);
  CHECK(sequences.at(0) == 256);
  CHECK(sequences.at(sequences.index_of(8192)) == 8192);
  CHECK(sequences.index_of(1) == 0);
  const FitAxis layers(job, FitGoal::layers);
  CHECK(layers.step() == job.parallel.pipeline * job.parallel.virtual_pipeline);
  const FitAxis micro(job, FitGoal::micro_batch);
  for (std::int64_t i = 0; i < micro.size(); ++i) CHECK(job.batch.global / job.parallel.data() % micro.at(i) == 0);
  const FitAxis gpus(job, FitGoal::gpus);
  for (std::int64_t i = 0; i < gpus.size(); ++i)
    CHECK(gpus.at(i) % (job.parallel.tensor * job.parallel.pipeline * job.parallel.context) == 0);
  CHECK(gpus.at(gpus.index_of(job.parallel.gpus)) == job.parallel.gpus);
}

TEST_CASE("the fewest GPUs and the least host memory that do") {
  Job job = library_job("llama3-8b-hgx-h200");
  job.batch.sequence = 2048;
  job.budget.device = 79_GiB;
  const FitResult gpus = fit(job, FitGoal::gpus, Megatron::any);
  for (const FitLimit& limit : gpus.limits) {
    INFO("offload " << limit.offload);
    REQUIRE(limit.fits);
    CHECK(limit.fits->answer->feasible());
    if (!limit.breaks) continue;  // one GPU does
    CHECK(limit.breaks->stop != FitStop::nothing);
    if (limit.breaks->answer) CHECK_FALSE(limit.breaks->answer->feasible());
  }
  CHECK(gpus.limits[0].fits->value < gpus.limits[1].fits->value);

  Job tight = library_job("measured-1.8b-1xh200");
  tight.budget.device = 30_GiB;
  const FitResult memory = fit(tight, FitGoal::host_memory, Megatron::any);
  REQUIRE(memory.limits.size() == 1);
  REQUIRE(memory.limits[0].fits);
  const Answer& least = *memory.limits[0].fits->answer;
  CHECK(memory.limits[0].fits->value == (least.host_pinned_per_host + least.host_pageable_per_host).value);
  // No row of the plan, each its policy's best, does with less.
  for (const Answer& row : search(tight, {.cures = false}).candidates)
    if (row.deployable && row.feasible())
      CHECK((row.host_pinned_per_host + row.host_pageable_per_host).value >= memory.limits[0].fits->value);
}

TEST_CASE("where a rule stops the job, not memory, it is named with its words") {
  // 1.8e9 parameters in one micro-batch of everything: the batch ends before memory does.
  const Job job = library_job("measured-1.8b-1xh200");
  const FitResult micro = fit(job, FitGoal::micro_batch, Megatron::any);
  REQUIRE(micro.limits[0].fits);
  CHECK(micro.limits[0].fits->value == job.batch.global / job.parallel.data());
  REQUIRE(micro.limits[0].breaks);
  CHECK(micro.limits[0].breaks->stop == FitStop::rule);
  CHECK(micro.limits[0].breaks->value == 2 * micro.limits[0].fits->value);
  CHECK(micro.limits[0].breaks->obstacle.find("batch") != std::string::npos);
  CHECK_FALSE(is_valid(with_value(job, FitGoal::micro_batch, micro.limits[0].breaks->value)));

  const Job experts = library_job("mixtral-8x7b-hgx-h200");
  const FitResult gpus = fit(experts, FitGoal::gpus, Megatron::any);
  REQUIRE(gpus.limits[0].breaks);
  if (gpus.limits[0].breaks->stop == FitStop::rule) {
    CHECK_FALSE(is_valid(with_value(experts, FitGoal::gpus, gpus.limits[0].breaks->value)));
    CHECK_FALSE(gpus.limits[0].breaks->obstacle.empty());
  }
}

TEST_CASE("what stops a job is told apart: device budget, host budget, no policy left") {
  Job job = small_job();
  job.budget.device = 18_GiB;
  const FitResult device = fit(job, FitGoal::sequence, Megatron::any);
  REQUIRE(device.limits[0].breaks);
  CHECK(device.limits[0].breaks->stop == FitStop::device_budget);
  Job poor = library_job("measured-1.8b-1xh200");  // chunked pins about 22 GiB of state
  poor.budget.device = 30_GiB;
  poor.budget.host = 4_GiB;
  const FitResult host = fit(poor, FitGoal::host_memory, Megatron::any);
  REQUIRE(host.limits[0].breaks);
  CHECK((host.limits[0].breaks->stop == FitStop::host_budget || host.limits[0].breaks->stop == FitStop::device_budget));
  CHECK_FALSE(host.limits[0].fits);
}

TEST_CASE("the least host memory says that it was looked for among all schedules") {
  Job job = library_job("measured-1.8b-1xh200");
  job.budget.device = 30_GiB;
  const FitResult free = fit(job, FitGoal::host_memory, Megatron::any);
  REQUIRE(free.limits[0].fits);
  const std::string& reason = free.limits[0].fits->answer->reason;
  CHECK(reason.find("that you can deploy") != std::string::npos);
  CHECK(reason.find("asks for") == std::string::npos);
  job.offload.policy = free.limits[0].fits->answer->candidate.policy;
  const FitResult fixed = fit(job, FitGoal::host_memory, Megatron::any);
  CHECK(fixed.limits[0].fits->answer->reason.find("that the job asks for") != std::string::npos);
  // The same bytes as a host budget: it fits with them and not with one less.
  job.offload.policy.reset();
  job.budget.host = Bytes{free.limits[0].fits->value};
  CHECK(search(job, {.cures = false}).recommended.has_value());
  job.budget.host = *job.budget.host - Bytes{1};
  CHECK_FALSE(search(job, {.cures = false}).recommended.has_value());
}

TEST_CASE("a measured step is scaled with the sequence like the roofline, and said so") {
  Job job = small_job();
  job.compute.step_seconds = Seconds{1};
  job.budget.device = 18_GiB;
  const FitResult result = fit(job, FitGoal::sequence, Megatron::any);
  CHECK(result.notes.size() == 1);
  REQUIRE(result.limits[0].fits);
  const double ratio = static_cast<double>(result.limits[0].fits->value) / static_cast<double>(job.batch.sequence);
  // Attention grows faster than the sequence.
  if (ratio > 1) CHECK(result.limits[0].fits->answer->step.value > ratio * 0.99);
}

TEST_CASE("every goal is found by its name, and is either to be largest or to be least") {
  std::vector<std::string> words = fit_goal_words(true);
  CHECK(words == std::vector<std::string>{"sequence", "micro-batch", "layers"});
  for (const std::string& word : fit_goal_words(false)) words.push_back(word);
  CHECK(words.size() == 5);
  for (const std::string& word : words) CHECK(name_of(fit_goal_named(word).value()) == word);
  CHECK_FALSE(fit_goal_named("Sequence"));
}
