#include "planner/overlap_pieces.hpp"

#include <algorithm>

#include "planner/weight_bytes.hpp"

namespace ebb {

namespace {

std::size_t bucket_count(const StageLayout& stage, bool expert) {
  std::size_t count = 0;
  for (const BufferLayout& buffer : stage.buffers) {
    if (buffer.expert == expert) count += buffer.buckets.size();
  }
  return count;
}

/// The piece of bucket `index` of `count`: the last bucket alone in the last piece, the others evenly before it.
std::size_t piece_of(std::size_t index, std::size_t count, std::size_t pieces) {
  if (pieces == 1 || index + 1 == count) return pieces - 1;
  return index * (pieces - 1) / (count - 1);
}

}  // namespace

std::vector<OverlapPiece> overlap_pieces(const Job& job, const StageLayout& stage) {
  const bool sharded = std::any_of(stage.buffers.begin(), stage.buffers.end(),
                                   [](const BufferLayout& buffer) { return buffer.shards > 1; });
  const std::array<std::size_t, 2> counts = {bucket_count(stage, false), bucket_count(stage, true)};
  std::size_t count = 1;
  if (job.parallel.overlap_grad_reduce && sharded)
    count = std::clamp(std::max(counts[0], counts[1]), count, kMostPieces);

  std::vector<OverlapPiece> pieces(count);
  std::vector<std::int64_t> elements(count, 0);
  std::array<std::size_t, 2> index{};
  for (const BufferLayout& buffer : stage.buffers) {
    for (const Bucket& bucket : buffer.buckets) {
      const std::size_t p = piece_of(index[buffer.expert]++, counts[buffer.expert], count);
      pieces[p].reduce[buffer.expert] += bytes_of(bucket.numel(), size_of(job.precision.grads));
      pieces[p].gather[buffer.expert] += gathered_bytes(job, buffer, bucket.numel());
      elements[p] += bucket.numel().value;
    }
  }
  std::int64_t begin = 0;
  for (std::size_t p = 0; p < count; ++p) {
    pieces[p].range = {begin, begin + elements[p]};
    begin += elements[p];
  }
  return pieces;
}

Group strided_group(std::int64_t members, std::int64_t stride, std::int64_t nvlink_domain) {
  const std::int64_t per_domain = std::max<std::int64_t>(1, nvlink_domain / stride);
  return {static_cast<std::uint32_t>(members), static_cast<std::uint32_t>(stride),
          static_cast<std::uint32_t>(ceil_div(members, per_domain))};
}

Group sharding_group(const Job& job, bool expert) {
  const Parallel& parallel = job.parallel;
  const std::int64_t domain = job.cluster.interconnect.nvlink_domain;
  if (expert) return strided_group(parallel.expert_shards(), parallel.expert_tensor * parallel.expert, domain);
  return strided_group(parallel.dense_shards(), parallel.tensor, domain);
}

Group instance_group(const Job& job, bool expert) {
  const Parallel& parallel = job.parallel;
  const std::int64_t stride = expert ? parallel.expert_tensor * parallel.expert * parallel.expert_shards()
                                     : parallel.tensor * parallel.dense_shards();
  return strided_group(parallel.optimizer_instances, stride, job.cluster.interconnect.nvlink_domain);
}

}  // namespace ebb
