// Lives of tiny jobs: plans of all parts, compiled; recipes and policies that lives are tried on; directories that go
// away again.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "planner/host_plans.hpp"
#include "replay/life_reference.hpp"
#include "tests/replay/replay_cases.hpp"

namespace ebb::test {

struct Life {
  std::vector<Plan> plans;
  std::vector<replay::LifeRank> ranks;
};

inline std::vector<replay::LifeRank> compile_ranks(const std::vector<Plan>& plans) {
  std::vector<replay::LifeRank> ranks;
  for (std::size_t first = 0; first < plans.size();) {
    std::vector<const Plan*> parts;
    std::size_t end = first;
    while (end < plans.size() && plans[end].rank == plans[first].rank) parts.push_back(&plans[end++]);
    ranks.push_back({replay::compile_life(parts, "life.json")});
    first = end;
  }
  return ranks;
}

inline Life life_of(const Job& job, const Candidate& candidate) {
  Life life;
  life.plans = host_life(job, candidate).plans;
  life.ranks = compile_ranks(life.plans);
  return life;
}

class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& name) {
    static int number = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("ebb-" + name + "-" + std::to_string(getpid()) + "-" + std::to_string(number++));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

struct LifeJob {
  std::string name;
  Job job;
  replay::TrainingOptions training;
};

inline Job life_job(int gpus) {
  Job job = tiny_job();
  job.parallel.gpus = gpus;
  job.model.layers = 1;
  job.model.vocab = 96;
  return job;
}

/// As small as it can be, for many lives.
inline Job smallest_life_job(int gpus) {
  Job job = life_job(gpus);
  job.model.hidden = 16;
  job.model.ffn = 32;
  job.model.heads = 2;
  job.model.kv_heads = 1;
  job.model.vocab = 64;
  return job;
}

/// The recipes of a life without FP8, on so many ranks.
inline std::vector<LifeJob> life_jobs(int gpus) {
  std::vector<LifeJob> jobs;
  const auto add = [&](const char* name, auto change, const replay::TrainingOptions& training = {}) {
    Job job = life_job(gpus);
    change(job);
    jobs.push_back({name, std::move(job), training});
  };
  add("bf16 parameters, fp32 state", [](Job&) {});
  add("bf16 moments, the optimizer's masters", [](Job& job) {
    job.precision.exp_avg = job.precision.exp_avg_sq = Dtype::bf16;
    job.precision.remainders = false;
  });
  add("fp32 moments, the optimizer's masters, bf16 gradients", [](Job& job) {
    job.precision.grads = Dtype::bf16;
    job.precision.precision_aware = true;
    job.precision.remainders = false;
  });
  replay::TrainingOptions scaled;
  scaled.scaling = {.on = true, .initial = 65536.0F, .interval = 4, .hysteresis = 1};
  add(
      "fp16 parameters, loss scaling", [](Job& job) { job.precision.params = Dtype::fp16; }, scaled);
  return jobs;
}

inline std::vector<Candidate> life_candidates(std::int64_t owned) {
  return {
      {.policy = Policy::resident},
      {.policy = Policy::full_reload},
      {.policy = Policy::chunked, .chunk_numel = {owned / 7}},
      {.policy = Policy::windowed, .chunk_size_mb = 1, .fraction = 0.5},
      {.policy = Policy::windowed},
      {.policy = Policy::pipelined, .chunk_numel = {owned / 9 | 1}, .slots = 3},
      {.policy = Policy::tidal, .chunk_numel = {owned / 9 | 1}},
  };
}

inline std::int64_t owned_by_first(const Job& job) {
  return owned_of(host_plans(job, {.policy = Policy::resident}).plans.front());
}

inline replay::LifeEvent init() { return {.kind = replay::LifeEvent::Kind::init, .directory = {}}; }
inline replay::LifeEvent steps(int count) {
  return {.kind = replay::LifeEvent::Kind::steps, .steps = count, .directory = {}};
}
inline replay::LifeEvent save(const std::string& directory) {
  return {.kind = replay::LifeEvent::Kind::save, .directory = directory};
}
inline replay::LifeEvent load(const std::string& directory) {
  return {.kind = replay::LifeEvent::Kind::load, .directory = directory};
}
inline replay::LifeEvent load_params(const std::string& directory) {
  return {.kind = replay::LifeEvent::Kind::load_params, .directory = directory};
}

}  // namespace ebb::test
