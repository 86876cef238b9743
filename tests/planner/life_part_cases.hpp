// Ranks whose life's parts are looked at, and what of a part is counted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "planner/optimizer_traffic.hpp"
#include "planner/plan_builder.hpp"
#include "planner/quantization.hpp"
#include "planner/verify.hpp"
#include "tests/planner/life_cases.hpp"
#include "tests/planner/lowering_cases.hpp"

namespace ebb::test {

inline std::string told(const std::vector<Hazard>& hazards) {
  std::string text;
  for (const Hazard& hazard : hazards) text += hazard.text + "\n";
  return text;
}

inline std::string told(const std::vector<std::string>& breaks) {
  std::string text;
  for (const std::string& line : breaks) text += line + "\n";
  return text;
}

/// Elements whose `state` the ops that pass `filter` touch; every element at most once, or -1.
template <class Filter>
std::int64_t elements_of(const Plan& plan, std::uint8_t state, Filter filter) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const Op& op : plan.ops)
    if ((op.states & state) && filter(op)) ranges.emplace_back(op.range.begin, op.range.end);
  std::sort(ranges.begin(), ranges.end());
  std::int64_t sum = 0;
  std::int64_t behind = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin < behind) return -1;
    behind = end;
    sum += end - begin;
  }
  return sum;
}

inline bool is_work(const Op& op, Work work) { return op.work == work; }

/// Both fixed cases and the recipes whose optimizer holds the masters, or has none.
inline std::vector<RankCase> life_part_cases() {
  std::vector<RankCase> cases = rank_cases();
  Job fp32 = load_job("llama3-8b-hgx-h200");
  fp32.precision.params = Dtype::fp32;
  cases.push_back(rank_case("llama3-8b, fp32 parameters", fp32));
  Job held = load_job("llama3-8b-hgx-h200");
  held.precision.exp_avg = held.precision.exp_avg_sq = Dtype::bf16;
  held.precision.remainders = false;
  cases.push_back(rank_case("llama3-8b, the optimizer holds whole masters", held));
  for (const Fp8Recipe recipe : {Fp8Recipe::tensorwise, Fp8Recipe::blockwise, Fp8Recipe::mxfp8}) {
    Job fp8 = load_job("llama3-8b-hgx-h200");
    fp8.precision.fp8 = recipe;
    fp8.precision.fp8_param_gather = true;
    fp8.precision.fp8_columnwise = Columnwise::eager;
    fp8.precision.fp8_reuse_grad_buffer = false;
    fp8.parallel.overlap_param_gather = recipe != Fp8Recipe::blockwise;
    cases.push_back(rank_case("llama3-8b, FP8 recipe " + std::to_string(static_cast<int>(recipe)), fp8, 0, 3));
  }
  Job experts = load_job("qwen3-30b-a3b-hgx-h100");
  experts.precision.fp8 = Fp8Recipe::blockwise;
  experts.precision.fp8_param_gather = true;
  cases.push_back(rank_case("qwen3-30b, FP8 experts", experts));
  return cases;
}

/// What torch's allocator adds to all state tensors of the rank.
inline std::int64_t rounded_up(const RankModel& rank) {
  const Precision& precision = rank.job->precision;
  return allocated_state(precision, rank.shards, kAllState).value - stored_state(precision, rank.shards).value;
}

inline Numel largest_shard(const RankModel& rank) {
  Numel largest{0};
  for (const Shard& shard : rank.shards) largest = std::max(largest, shard.numel);
  return largest;
}

}  // namespace ebb::test
