#include "planner/workspaces.hpp"

#include <algorithm>

namespace ebb {

namespace {

constexpr std::int64_t kStreamsOfGroupedProducts = 4;  // Transformer Engine: get_num_cublas_streams

/// GPUs of compute capability 8.x, by the names that profiles use.
bool is_before_hopper(const Job& job) {
  const std::string& gpu = job.cluster.gpu.name;
  return gpu.find("A100") != std::string::npos || gpu.find("4090") != std::string::npos;
}

Bytes torch_workspace(const Job& job) { return is_before_hopper(job) ? 8_MiB + 128_KiB : 32_MiB; }
Bytes engine_workspace(const Job& job) { return is_before_hopper(job) ? 4_MiB : 32_MiB; }

/// Its layers use it, and so does Megatron-LM's router, whatever the layers are (moe_utils.py: te_general_gemm).
bool uses_transformer_engine(const Job& job) {
  return job.compute.attention != Attention::local || job.model.moe.has_value();
}

Bytes sum_of(const std::vector<Bytes>& sizes) {
  Bytes sum{0};
  for (const Bytes size : sizes) sum += size;
  return sum;
}

}  // namespace

std::vector<Bytes> workspaces_of(const Job& job, FirstUse what) {
  switch (what) {
    case FirstUse::forward_matmul:
      if (uses_transformer_engine(job)) return {torch_workspace(job), engine_workspace(job)};
      return {torch_workspace(job)};
    case FirstUse::backward_matmul:
      return {torch_workspace(job)};
    case FirstUse::grouped_matmul:
      return std::vector<Bytes>(kStreamsOfGroupedProducts, engine_workspace(job));
    default:
      return {};
  }
}

Bytes matrix_workspaces(const Job& job) {
  return sum_of(workspaces_of(job, FirstUse::forward_matmul)) + sum_of(workspaces_of(job, FirstUse::backward_matmul));
}

Bytes grouped_matrix_workspaces(const Job& job) { return sum_of(workspaces_of(job, FirstUse::grouped_matmul)); }

}  // namespace ebb
