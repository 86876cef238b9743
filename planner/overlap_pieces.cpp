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

/// How many pieces there are, and calls visit(piece, buffer, bucket) for every bucket in the stage's order.
template <class Visit>
std::size_t for_each_bucket(const Job& job, const StageLayout& stage, Visit visit) {
  const bool sharded = std::any_of(stage.buffers.begin(), stage.buffers.end(),
                                   [](const BufferLayout& buffer) { return buffer.shards > 1; });
  const std::array<std::size_t, 2> counts = {bucket_count(stage, false), bucket_count(stage, true)};
  std::size_t count = 1;
  if (job.parallel.overlap_grad_reduce && sharded)
    count = std::clamp(std::max(counts[0], counts[1]), count, kMostPieces);
  std::array<std::size_t, 2> index{};
  for (std::size_t b = 0; b < stage.buffers.size(); ++b) {
    const BufferLayout& buffer = stage.buffers[b];
    for (std::size_t k = 0; k < buffer.buckets.size(); ++k)
      visit(piece_of(index[buffer.expert]++, counts[buffer.expert], count), b, k);
  }
  return count;
}

}  // namespace

std::vector<OverlapPiece> overlap_pieces(const Job& job, const StageLayout& stage) {
  std::array<OverlapPiece, kMostPieces> pieces;
  std::array<std::int64_t, kMostPieces> elements{};
  const std::size_t count = for_each_bucket(job, stage, [&](std::size_t p, std::size_t b, std::size_t k) {
    const BufferLayout& buffer = stage.buffers[b];
    const Bucket& bucket = buffer.buckets[k];
    pieces[p].reduce[buffer.expert] += bytes_of(bucket.numel(), size_of(job.precision.grads));
    if (buffer.division != Division::none)
      pieces[p].gather[buffer.expert] += gathered_bytes(job, buffer, bucket.numel());
    elements[p] += bucket.numel().value;
  });
  std::int64_t begin = 0;
  for (std::size_t p = 0; p < count; ++p) {
    pieces[p].range = {begin, begin + elements[p]};
    begin += elements[p];
  }
  return {pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(count)};
}

PaddedOrder padded_order(const Job& job, const StageLayout& stage) {
  struct BucketPlace {
    std::size_t piece, buffer, bucket;
  };
  std::vector<BucketPlace> places;
  for_each_bucket(job, stage, [&](std::size_t p, std::size_t b, std::size_t k) { places.push_back({p, b, k}); });
  std::stable_sort(places.begin(), places.end(),
                   [](const BucketPlace& a, const BucketPlace& b) { return a.piece < b.piece; });
  PaddedOrder order;
  for (const BufferLayout& buffer : stage.buffers) order.begin.emplace_back(buffer.buckets.size());
  Numel begin{0};
  for (const BucketPlace& place : places) {
    const BufferLayout& buffer = stage.buffers[place.buffer];
    const Numel end = begin + buffer.buckets[place.bucket].numel();
    order.begin[place.buffer][place.bucket] = begin.value;
    order.buckets.push_back({begin, end, buffer.expert, buffer.quantized});
    begin = end;
  }
  return order;
}

Group strided_group(std::int64_t members, std::int64_t stride, std::int64_t nvlink_domain) {
  const std::int64_t per_domain = std::max<std::int64_t>(1, nvlink_domain / stride);
  return {static_cast<std::uint32_t>(members), static_cast<std::uint32_t>(stride),
          static_cast<std::uint32_t>(ceil_div(members, per_domain))};
}

namespace {

/// Between the ranks of a sharding group.
std::int64_t stride_of(const Parallel& parallel, bool expert) {
  const std::int64_t inside = expert ? parallel.expert_tensor * parallel.expert : parallel.tensor;
  // Pipeline ranks between data-parallel ones; where context-parallel ranks are the only ones, they stay neighbours.
  const bool apart = parallel.pipeline_inner && (expert || parallel.data() > 1);
  return apart ? inside * parallel.pipeline : inside;
}

}  // namespace

Group sharding_group(const Job& job, bool expert) {
  const Parallel& parallel = job.parallel;
  const std::int64_t members = expert ? parallel.expert_shards() : parallel.dense_shards();
  return strided_group(members, stride_of(parallel, expert), job.cluster.interconnect.nvlink_domain);
}

Group instance_group(const Job& job, bool expert) {
  const Parallel& parallel = job.parallel;
  const std::int64_t members = expert ? parallel.expert_shards() : parallel.dense_shards();
  return strided_group(parallel.optimizer_instances, stride_of(parallel, expert) * members,
                       job.cluster.interconnect.nvlink_domain);
}

}  // namespace ebb
