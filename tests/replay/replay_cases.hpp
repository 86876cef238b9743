// Tiny jobs, and the candidates that reach every lowering: what replay's tests execute.
#pragma once

#include <string>
#include <vector>

#include "models/job_yaml.hpp"
#include "planner/host_plans.hpp"
#include "replay/program.hpp"

namespace ebb::test {

inline Job tiny_job(const std::string& name = "tiny") {
  return load_job(std::string(EBB_TEST_DATA) + "/replay/" + name + ".yaml");
}

struct ReplayJob {
  std::string name;
  Job job;
};

/// Between them every kind of collective, gradient, moment, master and parameter that is replayed.
inline std::vector<ReplayJob> replay_jobs() {
  std::vector<ReplayJob> jobs;
  const auto add = [&](const char* name, int gpus, auto change, const char* file = "tiny") {
    Job job = tiny_job(file);
    job.parallel.gpus = gpus;
    job.model.layers = 1;
    job.model.vocab = 96;
    change(job);
    jobs.push_back({name, std::move(job)});
  };
  const auto bf16_moments = [](Job& job) {
    job.precision.exp_avg = job.precision.exp_avg_sq = Dtype::bf16;
    job.precision.remainders = false;
  };
  add("1 rank", 1, [](Job&) {});
  add("2 ranks", 2, [](Job&) {});
  add("2 ranks, four buckets", 2, [](Job& job) { job.parallel.bucket_numel = Numel{4000}; });
  add(
      "2 ranks, experts", 2, [](Job&) {}, "tiny-moe");
  add(
      "4 ranks, experts twice", 4, [](Job&) {}, "tiny-moe");
  add("2 ranks, bf16 moments", 2, bf16_moments);
  add("2 ranks, bf16 gradients", 2, [](Job& job) { job.precision.grads = Dtype::bf16; });
  add("1 rank, the optimizer's masters, bf16 gradients", 1, [](Job& job) {
    job.precision.grads = Dtype::bf16;
    job.precision.precision_aware = true;
    job.precision.remainders = false;
  });
  add("2 ranks, bf16 moments and gradients", 2, [&](Job& job) {
    bf16_moments(job);
    job.precision.grads = Dtype::bf16;
  });
  add("2 ranks, fp32 parameters", 2, [](Job& job) { job.precision.params = Dtype::fp32; });
  add("2 ranks, fp16 parameters", 2, [](Job& job) { job.precision.params = Dtype::fp16; });
  add("4 ranks, two optimizer instances", 4, [](Job& job) { job.parallel.optimizer_instances = 2; });
  add("2 ranks, no overlap, unfused Adam", 2, [](Job& job) {
    job.parallel.overlap_grad_reduce = job.parallel.overlap_param_gather = false;
    job.compute.adam = AdamKernel::foreach;
  });
  add("2 ranks, not distributed", 2, [](Job& job) {
    job.optimizer.distributed = false;
    job.parallel.overlap_param_gather = false;
  });
  return jobs;
}

/// Wide enough for several chunks of a MiB of moments in each manager.
inline std::vector<ReplayJob> windowed_jobs() {
  std::vector<ReplayJob> jobs;
  Job dense = tiny_job();
  dense.model.vocab = 4096;
  jobs.push_back({"1 rank, wide", dense});
  Job experts = tiny_job("tiny-moe");
  experts.model.vocab = 4096;
  experts.model.moe->ffn = 512;
  jobs.push_back({"2 ranks, wide experts", experts});
  return jobs;
}

/// Of a job whose ranks own about `owned` elements. Odd slots cut shards and leave a last partial one.
inline std::vector<Candidate> replay_candidates(std::int64_t owned) {
  return {
      {.policy = Policy::full_reload},
      {.policy = Policy::chunked, .chunk_numel = {owned / 7}},
      {.policy = Policy::chunked, .chunk_numel = {owned}},
      {.policy = Policy::windowed},
      {.policy = Policy::windowed, .chunk_size_mb = 1},
      {.policy = Policy::windowed, .chunk_size_mb = 1, .fraction = 0.5},
      {.policy = Policy::cpu_adam},
      {.policy = Policy::cpu_adam, .fraction = 0.3},
      {.policy = Policy::pipelined, .chunk_numel = {owned / 9 | 1}, .slots = 1},
      {.policy = Policy::pipelined, .chunk_numel = {owned / 9 | 1}, .slots = 3},
      {.policy = Policy::pipelined, .chunk_numel = {2 * owned}, .slots = 2},
      {.policy = Policy::tidal, .chunk_numel = {owned / 9 | 1}},
      {.policy = Policy::tidal, .chunk_numel = {owned / 29 | 1}},
      {.policy = Policy::tidal, .chunk_numel = {2 * owned}},
  };
}

inline std::string text_of(const Candidate& candidate) {
  return std::string(name_of(candidate.policy)) + " N=" + std::to_string(candidate.chunk_numel.value) +
         " MiB=" + std::to_string(candidate.chunk_size_mb) + " f=" + std::to_string(candidate.fraction) +
         " slots=" + std::to_string(candidate.slots) + " cap=" + std::to_string(candidate.cap.value);
}

/// cpu-adam steps in fp32 whatever the job says, and would round bf16 gradients: not every job has an equal resident.
inline bool comparable(const Job& job, const Candidate& candidate) {
  if (candidate.policy != Policy::cpu_adam) return true;
  return job.precision.exp_avg == Dtype::fp32 && job.precision.grads == Dtype::fp32;
}

inline std::int64_t owned_of(const Plan& plan) {
  std::int64_t owned = 0;
  for (const PlanShard& shard : plan.shards) owned += shard.numel.value;
  return owned;
}

inline std::vector<replay::Program> compile_all(const std::vector<Plan>& plans) {
  std::vector<replay::Program> programs;
  for (const Plan& plan : plans) programs.push_back(replay::compile(plan, "plan.json"));
  return programs;
}

}  // namespace ebb::test
