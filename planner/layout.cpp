// Buffers of parameters and gradients. Source: Megatron-LM main d98e8a64dd, core/optimizer/distrib_optimizer.py:506-587
// and core/optimizer/param_layout.py:19-45 (layout), core/distributed/param_and_grad_buffer.py:888-1001 (which buffers;
// without the distributed optimizer).
//
// Layout of one buffer. With d = lcm(size of the sharding group, 128), and 2^16 too with pad_buckets, and parameters in
// reversed definition order:
//   start = round_up(start, 64)                                  elements, not bytes
//   a shared embedding closes the bucket before it and the one that holds it
//   end = start + numel
//   the bucket closes behind the parameter that brings it to the bucket size: it overshoots, parameters never split
//   closing: bucket end = round_up(end, d), the next bucket starts there
// Without the distributed optimizer nothing is aligned or padded, shared embeddings are as others, the buffer is of
// gradients alone, and parameters stay the tensors that the model's modules made.
// Buffers. A model chunk has one buffer for each (dense or expert, fp8 or not) among its parameters, by first
// appearance, dense ones first; each virtual stage has its own. Under Muon with the layer-wise layout what Muon steps
// and what Adam steps are apart as well.
//
// Not here: parameters in fp32 under bf16 training, NVFP4's packed index.
#include "planner/layout.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "planner/layer_wise_layout.hpp"

namespace ebb {

namespace {

constexpr std::int64_t kParameterAlignment = 64;
constexpr std::int64_t kBucketAlignment = 128;
constexpr std::int64_t kHighBandwidthAlignment = 1 << 16;  // --ddp-pad-buckets-for-high-nccl-busbw

/// Bucket size of a model chunk; none: the chunk is one bucket, because nothing overlaps with its backward pass or,
/// behind the first stage's first chunk, nothing would be gained (training.py:2179-2196, 2504-2516).
/// The default counts the whole dp_cp group, whatever the number of optimizer instances.
std::optional<Numel> bucket_limit(const Parallel& parallel, std::int64_t pipeline_rank, std::size_t chunk) {
  if (!parallel.overlap_grad_reduce || parallel.gather_with_step || pipeline_rank > 0 || chunk > 0) return std::nullopt;
  if (parallel.bucket_numel) return parallel.bucket_numel;
  return Numel{std::max<std::int64_t>(40'000'000, 1'000'000 * parallel.data() * parallel.context)};
}

/// Builds one buffer while its parameters arrive in reversed definition order.
class BufferBuilder {
 public:
  /// `alignment`: of bucket ends.
  BufferBuilder(BufferLayout& buffer, std::optional<Numel> limit, std::int64_t alignment)
      : buffer_(buffer), limit_(limit), aligned_(buffer.division == Division::slices), alignment_(alignment) {}

  void place(std::uint32_t index, const Parameter& parameter) {
    const bool alone = parameter.shared_embedding && aligned_;
    std::int64_t start = aligned_ ? round_up(end_, kParameterAlignment) : end_;
    if (alone && open_) {
      end_ = start;
      close();
      start = end_;
    }
    const auto bucket = static_cast<std::uint32_t>(buffer_.buckets.size());
    end_ = start + parameter.numel().value;
    open_ = true;
    buffer_.ranges.push_back({.parameter = index, .bucket = bucket, .start = {start}, .end = {end_}});
    if (alone || (limit_ && end_ - bucket_start_ >= limit_->value)) close();
  }

  void finish() {
    if (open_) close();
    buffer_.numel = Numel{end_};
  }

 private:
  void close() {
    const Numel unpadded{end_ - bucket_start_};
    if (aligned_) end_ = round_up(end_, alignment_);
    buffer_.buckets.push_back({.start = {bucket_start_}, .end = {end_}, .unpadded = unpadded});
    buffer_.unpadded += unpadded;
    bucket_start_ = end_;
    open_ = false;
  }

  BufferLayout& buffer_;
  std::optional<Numel> limit_;
  bool aligned_;
  std::int64_t alignment_;
  std::int64_t end_ = 0;
  std::int64_t bucket_start_ = 0;
  bool open_ = false;  // the current bucket has a parameter
};

/// Builds the buffers of one model chunk.
class ChunkBuffers {
 public:
  /// The chunk's parameters are stage.parameters from `first` on.
  ChunkBuffers(StageLayout& stage, const Parallel& parallel, std::uint32_t chunk, std::size_t first)
      : stage_(stage),
        parallel_(parallel),
        chunk_(chunk),
        first_(static_cast<std::uint32_t>(first)),
        limit_(bucket_limit(parallel, stage.pipeline_rank, chunk)) {}

  void append() {
    const auto end = static_cast<std::uint32_t>(stage_.parameters.size());
    for (const bool expert : {false, true}) {
      std::vector<Kind> done;
      for (std::uint32_t i = first_; i < end; ++i) {
        const Kind kind = kind_of(stage_.parameters[i]);
        if (kind.expert != expert || std::find(done.begin(), done.end(), kind) != done.end()) continue;
        done.push_back(kind);
        append(kind);
      }
    }
  }

 private:
  /// What parameters of one buffer have in common.
  struct Kind {
    bool expert = false;
    bool quantized = false;
    bool layer_wise = false;
    bool operator==(const Kind&) const = default;
  };

  Kind kind_of(const Parameter& parameter) const {
    const OptimizerSettings& optimizer = stage_.optimizer;
    return {parameter.expert, parameter.quantized,
            optimizer.distributed && optimizer.layer_wise && is_orthogonalized(optimizer, parameter)};
  }

  void append(const Kind& kind) {
    const OptimizerSettings& optimizer = stage_.optimizer;
    BufferLayout& buffer = stage_.buffers.emplace_back();
    buffer.model_chunk = chunk_;
    buffer.expert = kind.expert;
    buffer.quantized = kind.quantized;
    buffer.shards = kind.expert ? parallel_.expert_shards() : parallel_.dense_shards();
    buffer.holds_parameters = optimizer.distributed;
    if (kind.layer_wise || (optimizer.layer_wise && !optimizer.distributed))
      buffer.division = Division::whole;
    else if (!optimizer.distributed)
      buffer.division = Division::none;
    EBB_ASSERT(buffer.shards > 0);
    std::vector<std::uint32_t> members;  // in reversed definition order
    for (auto p = static_cast<std::uint32_t>(stage_.parameters.size()); p-- > first_;)
      if (kind_of(stage_.parameters[p]) == kind) members.push_back(p);
    std::int64_t alignment = std::lcm(buffer.shards, kBucketAlignment);
    if (parallel_.pad_buckets) alignment = std::lcm(alignment, kHighBandwidthAlignment);
    if (kind.layer_wise) return place_layer_wise(stage_.parameters, members, limit_, alignment, buffer);
    BufferBuilder builder(buffer, limit_, alignment);
    for (const std::uint32_t p : members) builder.place(p, stage_.parameters[p]);
    builder.finish();
  }

  StageLayout& stage_;
  const Parallel& parallel_;
  std::uint32_t chunk_;
  std::uint32_t first_;
  std::optional<Numel> limit_;
};

}  // namespace

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
  stage.optimizer = job.optimizer;
  stage.gather_with_step = job.parallel.gather_with_step;
  stage.chunks = model_chunks(job, pipeline_rank);
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    const std::size_t first = stage.parameters.size();
    for (Parameter& parameter : chunk_parameters(job, stage.chunks[c])) {
      stage.parameters.push_back(std::move(parameter));
    }
    ChunkBuffers(stage, job.parallel, static_cast<std::uint32_t>(c), first).append();
  }
  if (stage.optimizer.layer_wise && !stage.optimizer.distributed) deal_parameters(stage);
  return stage;
}

}  // namespace ebb
