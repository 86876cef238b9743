#include "planner/optimizer_traffic.hpp"

#include <array>

#include "sim/torch_allocator.hpp"

namespace ebb {

std::int64_t state_bytes_per_element(const Precision& precision, std::uint8_t states) {
  std::int64_t bytes = 0;
  if (states & kExpAvg) bytes += size_of(precision.exp_avg);
  if (states & kExpAvgSq) bytes += size_of(precision.exp_avg_sq);
  if (states & kMaster) bytes += size_of(precision.master);
  return bytes;
}

Bytes allocated_tensors(std::span<const Shard> shards, std::int64_t bytes_per_element) {
  Bytes sum{0};
  for (const Shard& shard : shards) sum += sim::allocated_bytes(bytes_of(shard.numel, bytes_per_element));
  return sum;
}

Bytes allocated_state(const Precision& precision, std::span<const Shard> shards, std::uint8_t states) {
  std::array<std::int64_t, 5> tensors_of_size{};  // states by their bytes per element: mostly one size
  if (states & kExpAvg) ++tensors_of_size[size_of(precision.exp_avg)];
  if (states & kExpAvgSq) ++tensors_of_size[size_of(precision.exp_avg_sq)];
  if ((states & kMaster) && precision.params != Dtype::fp32) ++tensors_of_size[size_of(precision.master)];
  Bytes sum{0};
  if (states & kExpAvgSq)  // momentum alone has no second one
    for (const Shard& shard : shards)
      if (shard.moments < 2) sum -= sim::allocated_bytes(bytes_of(shard.numel, size_of(precision.exp_avg_sq)));
  for (std::size_t size = 1; size < tensors_of_size.size(); ++size) {
    if (tensors_of_size[size] == 0) continue;
    sum += allocated_tensors(shards, static_cast<std::int64_t>(size)) * tensors_of_size[size];
  }
  return sum;
}

int adam_scratch_tensors(const Job& job, AdamKernel kernel) {
  if (kernel == AdamKernel::foreach) return 1;
  const Precision& precision = job.precision;
  const bool fused_unscale = precision.exp_avg == precision.exp_avg_sq && precision.exp_avg == Dtype::bf16;
  int unscaled = 0;
  for (const Dtype moment : {precision.exp_avg, precision.exp_avg_sq}) {
    if (moment != Dtype::fp32 && !fused_unscale) ++unscaled;
  }
  return unscaled;
}

Bytes adam_temporaries(const Job& job, AdamKernel kernel, std::span<const Shard> shards) {
  const int tensors = adam_scratch_tensors(job, kernel);
  return tensors == 0 ? Bytes{0} : allocated_tensors(shards, 4) * tensors;
}

}  // namespace ebb
