// Ranks and candidates that together reach every branch of every lowering: one GPU and many, overlap and none, dense
// and expert optimizers, several optimizer instances, fp32 and bf16 gradients, fused and unfused Adam, fractions.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "models/job_yaml.hpp"
#include "planner/lower.hpp"
#include "planner/tidal_pieces.hpp"

namespace ebb::test {

/// Owns what a RankModel points to.
struct RankCase {
  std::string name;
  std::unique_ptr<Job> job;
  std::unique_ptr<StageLayout> stage;
  RankModel rank;
};

inline RankCase rank_case(std::string name, Job job, std::int64_t pipeline_rank = 0, std::int64_t rank = 0) {
  RankCase result;
  result.name = std::move(name);
  result.job = std::make_unique<Job>(std::move(job));
  result.stage = std::make_unique<StageLayout>(stage_layout(*result.job, pipeline_rank));
  result.rank = rank_model(*result.job, *result.stage, rank);
  return result;
}

inline RankCase measured_case() { return rank_case("measured 1.8b", load_job("measured-1.8b-1xh200")); }

inline std::vector<RankCase> rank_cases() {
  std::vector<RankCase> cases;
  cases.push_back(measured_case());
  cases.push_back(rank_case("llama3-8b, 8 GPUs, overlap", load_job("llama3-8b-hgx-h200")));

  Job plain = load_job("llama3-8b-hgx-h200");
  plain.parallel.overlap_grad_reduce = plain.parallel.overlap_param_gather = false;
  plain.precision.grads = Dtype::bf16;
  plain.compute.adam = AdamKernel::foreach;
  cases.push_back(rank_case("llama3-8b, no overlap, bf16 gradients, unfused Adam", plain));

  Job instances = load_job("llama3-8b-hgx-h200");
  instances.parallel.optimizer_instances = 2;
  instances.precision.exp_avg = instances.precision.exp_avg_sq = Dtype::bf16;
  cases.push_back(rank_case("llama3-8b, two optimizer instances, bf16 moments", instances));

  Job fp8 = load_job("llama3-8b-hgx-h200");
  fp8.precision.fp8 = Fp8Recipe::blockwise;
  fp8.precision.fp8_param_gather = true;
  cases.push_back(rank_case("llama3-8b, FP8 parameter gather", fp8));

  Job experts = load_job("qwen3-30b-a3b-hgx-h100");
  cases.push_back(rank_case("qwen3-30b, experts", experts));
  experts.parallel.overlap_param_gather = false;
  experts.compute.adam_by_policy[Policy::windowed] = AdamKernel::foreach;
  cases.push_back(rank_case("qwen3-30b, experts, gather in the step", experts));
  return cases;
}

/// Small enough numbers of chunks that every dependency can be deleted in turn.
inline std::vector<Candidate> candidates_for(const RankModel& rank) {
  const Numel tenth{ceil_div(rank.owned.value, 10)};
  // A cap with room for a third of the state even at the peak: that third never moves.
  const Bytes more = tidal_room(rank, {.policy = Policy::tidal, .chunk_numel = tenth}).cap +
                     bytes_of(rank.owned, rank.job->precision.state_bytes() / 3);
  return {
      {.policy = Policy::resident},
      {.policy = Policy::full_reload},
      {.policy = Policy::chunked, .chunk_numel = tenth},
      {.policy = Policy::chunked, .chunk_numel = rank.owned},
      {.policy = Policy::windowed},
      {.policy = Policy::windowed, .chunk_size_mb = tenth.value * 8 / (1 << 20)},
      {.policy = Policy::windowed, .chunk_size_mb = tenth.value * 8 / (1 << 20), .fraction = 0.5},
      {.policy = Policy::cpu_adam},
      {.policy = Policy::cpu_adam, .fraction = 0.3},
      {.policy = Policy::pipelined, .chunk_numel = tenth, .slots = 1},
      {.policy = Policy::pipelined, .chunk_numel = tenth, .slots = 3},
      {.policy = Policy::pipelined, .chunk_numel = rank.owned + rank.owned, .slots = 2},
      {.policy = Policy::tidal, .chunk_numel = tenth},
      {.policy = Policy::tidal, .chunk_numel = {ceil_div(rank.owned.value, 25)}},
      {.policy = Policy::tidal, .chunk_numel = {ceil_div(rank.owned.value, 25)}, .cap = more},
  };
}

/// Elements that tidal never moves.
inline std::int64_t kept_by(const RankModel& rank, const Candidate& candidate) {
  return candidate.policy == Policy::tidal ? tidal_pieces(rank, candidate)->kept.numel().value : 0;
}

inline std::string text_of(const Candidate& candidate) {
  return std::string(name_of(candidate.policy)) + " N=" + std::to_string(candidate.chunk_numel.value) +
         " MiB=" + std::to_string(candidate.chunk_size_mb) + " f=" + std::to_string(candidate.fraction) +
         " slots=" + std::to_string(candidate.slots) + " cap=" + std::to_string(candidate.cap.value);
}

}  // namespace ebb::test
