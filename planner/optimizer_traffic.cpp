#include "planner/optimizer_traffic.hpp"

#include <algorithm>
#include <array>

#include "models/memory/torch_allocator.hpp"

namespace ebb {

namespace {

/// Both moments bf16: the kernel converts them itself. Otherwise a state that is not fp32 has an fp32 copy in a step.
bool fused_moments(const Precision& precision) {
  return precision.exp_avg == precision.exp_avg_sq && precision.exp_avg == Dtype::bf16;
}

/// Only Transformer Engine's own masters can be fp16; Megatron's are fp32.
bool scaled_master(const Precision& precision) {
  return precision.optimizer_holds_masters() && precision.master == Dtype::fp16;
}

/// HBM bytes an element of the passes that bring a state to fp32 and back (fused_adam.py: get_unscaled_state,
/// _apply_scale):
///   fp8    dequantise 1 + 4, largest value 4, quantise 4 + 1
///   fp16   cast 2 + 4, times scale 4 + 4, largest value 4, times 1 / scale 4 + 4, cast 4 + 2
///   bf16   cast 2 + 4, cast 4 + 2, copy 2 + 2
constexpr std::int64_t conversion_bytes(Dtype type) {
  switch (type) {
    case Dtype::fp32:
      return 0;
    case Dtype::fp8:
      return 14;
    case Dtype::fp16:
      return 32;
    case Dtype::bf16:
      return 16;
  }
  return 0;
}

/// Read and write of one state, where Adam works on its fp32 copy: of that, and the conversions.
constexpr std::int64_t converted_bytes(Dtype type) { return 2 * 4 + conversion_bytes(type); }

std::int64_t param_traffic(const Precision& precision, bool one_pass) {
  if (precision.master_bytes() == 0) return 2 * size_of(precision.params);
  if (precision.keeps_remainders()) return 2 * size_of(precision.params);
  if (precision.optimizer_holds_masters()) return precision.fp8_param_gather ? 1 : size_of(precision.params);
  return one_pass ? size_of(precision.params) : 0;
}

}  // namespace

Precision precision_of(const Job& job, Policy policy) {
  Precision precision = job.precision;
  if (policy != Policy::cpu_adam) return precision;
  precision.exp_avg = precision.exp_avg_sq = precision.master = Dtype::fp32;
  precision.precision_aware = false;
  precision.fp8_param_gather = precision.fp4_param_gather = false;  // a copy writes parameters of any type
  return precision;
}

std::int64_t adam_bytes_per_element(const Precision& precision, bool one_pass) {
  std::int64_t bytes = grad_bytes_per_element(precision) + param_traffic(precision, one_pass);
  for (const Dtype moment : {precision.exp_avg, precision.exp_avg_sq})
    bytes += fused_moments(precision) ? 2 * size_of(moment) : converted_bytes(moment);
  bytes += scaled_master(precision) ? converted_bytes(precision.master) : 2 * precision.master_bytes();
  return bytes;
}

std::int64_t state_bytes_per_element(const Precision& precision, std::uint8_t states) {
  std::int64_t bytes = 0;
  if (states & kExpAvg) bytes += size_of(precision.exp_avg);
  if (states & kExpAvgSq) bytes += size_of(precision.exp_avg_sq);
  if (states & kMaster) bytes += precision.master_bytes();
  return bytes;
}

Bytes allocated_tensors(std::span<const Shard> shards, std::int64_t bytes_per_element) {
  Bytes sum{0};
  for (const Shard& shard : shards) sum += memory::allocated_bytes(bytes_of(shard.numel, bytes_per_element));
  return sum;
}

Bytes allocated_state(const Precision& precision, std::span<const Shard> shards, std::uint8_t states) {
  std::array<std::int64_t, 5> tensors_of_size{};  // states by their bytes per element: mostly one size
  if (states & kExpAvg) ++tensors_of_size[static_cast<std::size_t>(size_of(precision.exp_avg))];
  if (states & kExpAvgSq) ++tensors_of_size[static_cast<std::size_t>(size_of(precision.exp_avg_sq))];
  if (states & kMaster) ++tensors_of_size[static_cast<std::size_t>(precision.master_bytes())];
  Bytes sum{0};
  if (states & kExpAvgSq)  // momentum alone has no second one
    for (const Shard& shard : shards)
      if (shard.moments < 2) sum -= memory::allocated_bytes(bytes_of(shard.numel, size_of(precision.exp_avg_sq)));
  for (std::size_t size = 1; size < tensors_of_size.size(); ++size) {
    if (tensors_of_size[size] == 0) continue;
    sum += allocated_tensors(shards, static_cast<std::int64_t>(size)) * tensors_of_size[size];
  }
  return sum;
}

int scale_tensors(const Precision& precision) {
  return scale_tensors(precision.exp_avg) + scale_tensors(precision.exp_avg_sq) +
         (scaled_master(precision) ? scale_tensors(precision.master) : 0);
}

Bytes allocated_scales(const Precision& precision, std::span<const Shard> shards) {
  return memory::allocated_bytes({4}) * (static_cast<std::int64_t>(shards.size()) * scale_tensors(precision));
}

Bytes stored_state(const Precision& precision, std::span<const Shard> shards) {
  Bytes sum{0};
  for (const Shard& shard : shards)
    sum += bytes_of(shard.numel, precision.state_bytes() - (shard.moments < 2 ? size_of(precision.exp_avg_sq) : 0));
  return sum;
}

Bytes step_bytes(const Precision& precision, std::span<const Shard> shards, bool one_pass) {
  const std::int64_t each = adam_bytes_per_element(precision, one_pass);
  Bytes sum{0};
  for (const Shard& shard : shards)
    sum += bytes_of(shard.numel, each - (shard.moments < 2 ? 2 * size_of(precision.exp_avg_sq) : 0));
  return sum;
}

Flops newton_schulz_flops(std::int64_t rows, std::int64_t columns) {
  constexpr double kIterations = 5;
  const auto m = static_cast<double>(std::min(rows, columns));
  const auto n = static_cast<double>(std::max(rows, columns));
  return {kIterations * (4 * m * m * n + 2 * m * m * m)};
}

int adam_scratch_tensors(const Precision& precision, AdamKernel kernel) {
  if (kernel == AdamKernel::foreach) return 1;
  int unscaled = scaled_master(precision) ? 1 : 0;
  for (const Dtype moment : {precision.exp_avg, precision.exp_avg_sq}) {
    if (moment != Dtype::fp32 && !fused_moments(precision)) ++unscaled;
  }
  return unscaled;
}

Bytes adam_temporaries(const Precision& precision, AdamKernel kernel, std::span<const Shard> shards) {
  const int tensors = adam_scratch_tensors(precision, kernel);
  return tensors == 0 ? Bytes{0} : allocated_tensors(shards, 4) * tensors;
}

}  // namespace ebb
