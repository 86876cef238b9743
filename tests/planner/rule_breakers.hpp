// One change for each rule that breaks it, and only it, in a job that keeps them all (rules_test.cpp).
#pragma once

#include <string_view>
#include <vector>

#include "planner/rules.hpp"
#include "tests/planner/test_job.hpp"

namespace ebb::test {

inline Job clean_job() {
  Job job = small_job();
  job.cluster.gpu.name = "NVIDIA H200";
  return job;
}

inline void add_experts(Job& job) {
  MoeSpec moe;
  moe.experts = 8;
  moe.top_k = 2;
  moe.ffn = 1024;
  job.model.moe = moe;
}

inline void undistribute(Job& job) {
  job.optimizer.distributed = false;
  job.parallel.overlap_param_gather = false;
}

inline void add_mxfp8(Job& job) {
  job.cluster.gpu.name = "NVIDIA B200";
  job.precision.fp8 = Fp8Recipe::mxfp8;
  job.precision.fp8_param_gather = true;
}

inline void recompute_all(Job& job) {
  job.recompute = {.granularity = RecomputeGranularity::full, .method = "uniform", .layers = 1, .modules = {}};
}

/// Breaks `rule`, and only that, in a job that names `policy` (or none).
struct Breaker {
  std::string_view rule;
  void (*change)(Job&);
  std::vector<Policy> policies{};
  Megatron megatron = Megatron::any;
};

inline const std::vector<Policy> kStateOffload = {Policy::full_reload, Policy::chunked, Policy::windowed};
inline const std::vector<Policy> kReload = {Policy::full_reload, Policy::chunked};

std::vector<Breaker> size_breakers();
std::vector<Breaker> parallel_breakers();
std::vector<Breaker> optimizer_breakers();
std::vector<Breaker> precision_breakers();
std::vector<Breaker> run_breakers();
std::vector<Breaker> offload_breakers();
std::vector<Breaker> offload_state_breakers();

}  // namespace ebb::test
