// The distributed optimizer's layout. Source: Megatron-LM main d98e8a64dd, core/optimizer/distrib_optimizer.py:506-587
// and core/optimizer/param_layout.py:19-45 (layout), distrib_optimizer.py:134-250 (shards), 300-488 and
// core/optimizer/__init__.py (their order), core/parallel_state.py (ranks).
//
// Layout of one buffer. With d = lcm(size of the sharding group, 128) and parameters in reversed definition order:
//   start = round_up(start, 64)                                  elements, not bytes
//   a shared embedding closes the bucket before it and the one that holds it
//   end = start + numel
//   the bucket closes behind the parameter that brings it to the bucket size: it overshoots, parameters never split
//   closing: bucket end = round_up(end, d), the next bucket starts there
// Buffers. A model chunk has one buffer for each (dense or expert, fp8 or not) among its parameters, by first
// appearance, dense ones first; each virtual stage has its own.
// Shards. Every bucket is cut into equal ranges, one for each rank of its sharding group, wherever that cuts
// parameters: rank r owns [start + r W, start + (r + 1) W), W = bucket numel / group size.
//
// Not here: parameters in fp32 under bf16 training, NVFP4's packed index, --ddp-pad-buckets-for-high-nccl-busbw.
#include "planner/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

namespace ebb {

namespace {

constexpr std::int64_t kParameterAlignment = 64;
constexpr std::int64_t kBucketAlignment = 128;
constexpr std::int64_t kGroups = 2;      // decayed, not decayed
constexpr std::int64_t kOptimizers = 2;  // dense, expert

/// Bucket size of a model chunk; none: the chunk is one bucket, because nothing overlaps with its backward pass or,
/// behind the first stage's first chunk, nothing would be gained (training.py:2179-2196, 2504-2516).
/// The default counts the whole dp_cp group, whatever the number of optimizer instances.
std::optional<Numel> bucket_limit(const Parallel& parallel, std::int64_t pipeline_rank, std::size_t chunk) {
  if (!parallel.overlap_grad_reduce || pipeline_rank > 0 || chunk > 0) return std::nullopt;
  if (parallel.bucket_numel) return parallel.bucket_numel;
  return Numel{std::max<std::int64_t>(40'000'000, 1'000'000 * parallel.data() * parallel.context)};
}

/// Builds one buffer while its parameters arrive in reversed definition order.
class BufferBuilder {
 public:
  BufferBuilder(BufferLayout& buffer, std::optional<Numel> limit)
      : buffer_(buffer), limit_(limit), alignment_(std::lcm(buffer.shards, kBucketAlignment)) {}

  void place(std::uint32_t index, const Parameter& parameter) {
    std::int64_t start = round_up(end_, kParameterAlignment);
    if (parameter.shared_embedding && open_) {
      end_ = start;
      close();
      start = end_;
    }
    const auto bucket = static_cast<std::uint32_t>(buffer_.buckets.size());
    end_ = start + parameter.numel().value;
    open_ = true;
    buffer_.ranges.push_back({.parameter = index, .bucket = bucket, .start = {start}, .end = {end_}});
    if (parameter.shared_embedding || (limit_ && end_ - bucket_start_ >= limit_->value)) close();
  }

  void finish() {
    if (open_) close();
    buffer_.numel = Numel{end_};
  }

 private:
  void close() {
    const Numel unpadded{end_ - bucket_start_};
    end_ = round_up(end_, alignment_);
    buffer_.buckets.push_back({.start = {bucket_start_}, .end = {end_}, .unpadded = unpadded});
    buffer_.unpadded += unpadded;
    bucket_start_ = end_;
    open_ = false;
  }

  BufferLayout& buffer_;
  std::optional<Numel> limit_;
  std::int64_t alignment_;
  std::int64_t end_ = 0;
  std::int64_t bucket_start_ = 0;
  bool open_ = false;  // the current bucket has a parameter
};

/// Buffers of the parameters [first, parameters.size()) of one model chunk.
void append_buffers(StageLayout& stage, const Parallel& parallel, std::uint32_t chunk, std::size_t first) {
  const std::optional<Numel> limit = bucket_limit(parallel, stage.pipeline_rank, chunk);
  const auto end = static_cast<std::uint32_t>(stage.parameters.size());
  for (const bool expert : {false, true}) {
    std::array<bool, 2> done{};
    for (auto i = static_cast<std::uint32_t>(first); i < end; ++i) {
      const bool quantized = stage.parameters[i].quantized;
      if (stage.parameters[i].expert != expert || done[quantized]) continue;
      done[quantized] = true;
      BufferLayout& buffer = stage.buffers.emplace_back();
      buffer.model_chunk = chunk;
      buffer.expert = expert;
      buffer.quantized = quantized;
      buffer.shards = expert ? parallel.expert_shards() : parallel.dense_shards();
      EBB_ASSERT(buffer.shards > 0);
      BufferBuilder builder(buffer, limit);
      for (std::uint32_t p = end; p-- > first;) {
        const Parameter& parameter = stage.parameters[p];
        if (parameter.expert == expert && parameter.quantized == quantized) builder.place(p, parameter);
      }
      builder.finish();
    }
  }
}

/// Calls emit(range, numel, offset in the parameter) for what lies in [window_start, window_end), in index-map order.
/// Ranges are sorted by position, so the first one is found by binary search and the cost is that of the shards found.
template <class Emit>
void for_each_overlap(const BufferLayout& buffer, Numel window_start, Numel window_end, Emit emit) {
  auto range = std::partition_point(buffer.ranges.begin(), buffer.ranges.end(),
                                    [&](const ParameterRange& r) { return r.end <= window_start; });
  for (; range != buffer.ranges.end() && range->start < window_end; ++range) {
    const Numel low = std::max(range->start, window_start);
    const Numel high = std::min(range->end, window_end);
    emit(*range, high - low, low - range->start);
  }
}

}  // namespace

RankCoordinates coordinates_of(const Job& job, std::int64_t rank) {
  const Parallel& p = job.parallel;
  if (rank < 0 || rank >= p.gpus) {
    throw InputError(Place{}, fmt::format("rank {} does not exist", rank),
                     fmt::format("the job has ranks 0 to {}", p.gpus - 1));
  }
  EBB_ASSERT(p.dense_shards() > 0 && p.expert_shards() > 0);
  RankCoordinates at;
  at.tensor = rank % p.tensor;
  at.context = rank / p.tensor % p.context;
  at.data = rank / (p.tensor * p.context) % p.data();
  at.pipeline = rank / (p.tensor * p.context * p.data());
  at.dense_shard = (at.data * p.context + at.context) % p.dense_shards();
  at.expert = rank / p.expert_tensor % p.expert;
  at.expert_shard = rank / (p.expert_tensor * p.expert) % p.expert_data() % p.expert_shards();
  return at;
}

Numel StageLayout::padded(bool expert) const {
  Numel sum{0};
  for (const BufferLayout& buffer : buffers) {
    if (buffer.expert == expert) sum += buffer.numel;
  }
  return sum;
}

StageLayout stage_layout(const Job& job, std::int64_t pipeline_rank) {
  StageLayout stage;
  stage.pipeline_rank = pipeline_rank;
  stage.chunks = model_chunks(job, pipeline_rank);
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    const std::size_t first = stage.parameters.size();
    for (Parameter& parameter : chunk_parameters(job, stage.chunks[c])) {
      stage.parameters.push_back(std::move(parameter));
    }
    append_buffers(stage, job.parallel, static_cast<std::uint32_t>(c), first);
  }
  return stage;
}

std::vector<Shard> rank_shards(const StageLayout& stage, std::int64_t dense_shard, std::int64_t expert_shard) {
  std::array<std::vector<Shard>, kOptimizers * kGroups> groups;
  for (std::uint32_t b = 0; b < stage.buffers.size(); ++b) {
    const BufferLayout& buffer = stage.buffers[b];
    const std::int64_t rank = buffer.expert ? expert_shard : dense_shard;
    EBB_ASSERT(rank >= 0 && rank < buffer.shards);
    for (const Bucket& bucket : buffer.buckets) {
      const std::int64_t width = bucket.numel().value / buffer.shards;
      const Numel window{bucket.start.value + rank * width};
      for_each_overlap(buffer, window, window + Numel{width}, [&](const ParameterRange& range, Numel numel, Numel at) {
        const std::uint16_t optimizer = buffer.expert ? 1 : 0;
        const std::uint16_t group = stage.parameters[range.parameter].decayed ? 0 : 1;
        groups[static_cast<std::size_t>(optimizer * kGroups + group)].push_back({.parameter = range.parameter,
                                                                                 .buffer = b,
                                                                                 .bucket = range.bucket,
                                                                                 .optimizer = optimizer,
                                                                                 .group = group,
                                                                                 .numel = numel,
                                                                                 .offset = at});
      });
    }
  }
  std::vector<Shard> shards = std::move(groups[0]);
  for (std::size_t g = 1; g < groups.size(); ++g) shards.insert(shards.end(), groups[g].begin(), groups[g].end());
  return shards;
}

Numel owned(std::span<const Shard> shards) {
  Numel sum{0};
  for (const Shard& shard : shards) sum += shard.numel;
  return sum;
}

}  // namespace ebb
