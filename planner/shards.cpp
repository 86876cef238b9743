// Which shards a rank's optimizer has, and in which order. Source: Megatron-LM main d98e8a64dd,
// core/optimizer/distrib_optimizer.py:134-250 (slices), 300-488 and core/optimizer/__init__.py (order),
// core/optimizer/optimizer.py (Float16OptimizerWithFloat16Params: without slices), emerging_optimizers and
// layer_wise_optimizer.py (Muon).
//
// Slices. Every bucket is cut into equal ranges, one for each rank of its sharding group, wherever that cuts
// parameters: rank r owns [start + r W, start + (r + 1) W), W = bucket numel / group size. Order. Chained optimizers:
// dense, expert; with --overlap-param-gather-with-optimizer-step the first model chunk's dense parameters, the other
// chunks', expert; Muon's dense and expert matrices, then what is left to Adam, dense and expert. In each the groups:
// decayed, the embedding and output layer where they have a learning rate of their own (sorted by the override's name:
// lr before wd), not decayed. In a group: buffer by buffer, sliced ones in the order of their index map (reversed
// definition), others in definition order.
#include <algorithm>
#include <array>
#include <utility>

#include "models/errors.hpp"
#include "planner/layer_wise_layout.hpp"

namespace ebb {

namespace {

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

std::uint16_t optimizer_of(const StageLayout& stage, const BufferLayout& buffer, const Parameter& parameter) {
  if (stage.optimizer.kind == OptimizerKind::muon)
    return static_cast<std::uint16_t>((is_orthogonalized(stage.optimizer, parameter) ? 0 : 2) +
                                      (buffer.expert ? 1 : 0));
  if (!stage.gather_with_step) return buffer.expert ? 1 : 0;
  if (buffer.expert) return 2;
  return buffer.model_chunk > 0 ? 1 : 0;
}

std::uint16_t group_of(const StageLayout& stage, const Parameter& parameter) {
  const bool decoupled = stage.optimizer.decoupled_lr;
  if (decoupled && parameter.embedding_or_output) return 1;
  if (parameter.decayed) return 0;
  return decoupled ? 2 : 1;
}

std::uint8_t moments_of(const StageLayout& stage, const Parameter& parameter) {
  switch (stage.optimizer.kind) {
    case OptimizerKind::adam:
      return 2;
    case OptimizerKind::muon:
      return is_orthogonalized(stage.optimizer, parameter) ? 1 : 2;
    case OptimizerKind::lion:
    case OptimizerKind::sgd:
      return 1;
  }
  return 2;
}

/// Collects shards by optimizer and group.
class ShardLists {
 public:
  explicit ShardLists(const StageLayout& stage) : stage_(stage) {}

  void add(std::uint32_t buffer, const ParameterRange& range, Numel numel, Numel offset) {
    const Parameter& parameter = stage_.parameters[range.parameter];
    const std::uint16_t optimizer = optimizer_of(stage_, stage_.buffers[buffer], parameter);
    const std::uint16_t group = group_of(stage_, parameter);
    lists_[std::size_t{optimizer} * kGroups + group].push_back({.parameter = range.parameter,
                                                                .buffer = buffer,
                                                                .bucket = range.bucket,
                                                                .optimizer = optimizer,
                                                                .group = group,
                                                                .numel = numel,
                                                                .offset = offset,
                                                                .start = range.start + offset,
                                                                .moments = moments_of(stage_, parameter)});
  }

  std::vector<Shard> take() {
    std::vector<Shard> shards;
    for (std::vector<Shard>& list : lists_) {
      if (shards.empty())
        shards = std::move(list);
      else
        shards.insert(shards.end(), list.begin(), list.end());
    }
    return shards;
  }

 private:
  const StageLayout& stage_;
  static constexpr int kOptimizers = 4;
  static constexpr int kGroups = 3;
  std::array<std::vector<Shard>, kOptimizers * kGroups> lists_;
};

void add_slices(const StageLayout& stage, std::uint32_t index, std::int64_t rank, ShardLists& lists) {
  const BufferLayout& buffer = stage.buffers[index];
  for (const Bucket& bucket : buffer.buckets) {
    const std::int64_t width = bucket.numel().value / buffer.shards;
    const Numel window{bucket.start.value + rank * width};
    for_each_overlap(
        buffer, window, window + Numel{width},
        [&](const ParameterRange& range, Numel numel, Numel offset) { lists.add(index, range, numel, offset); });
  }
}

void add_whole(const StageLayout& stage, std::uint32_t index, std::int64_t rank, ShardLists& lists) {
  const BufferLayout& buffer = stage.buffers[index];
  std::vector<const ParameterRange*> ranges;
  for (const ParameterRange& range : buffer.ranges)
    if (buffer.division == Division::none || range.owner == static_cast<std::uint32_t>(rank)) ranges.push_back(&range);
  std::sort(ranges.begin(), ranges.end(),
            [](const ParameterRange* a, const ParameterRange* b) { return a->parameter < b->parameter; });
  for (const ParameterRange* range : ranges) lists.add(index, *range, range->end - range->start, Numel{0});
}

}  // namespace

std::vector<Shard> rank_shards(const StageLayout& stage, std::int64_t dense_shard, std::int64_t expert_shard) {
  ShardLists lists(stage);
  for (std::uint32_t b = 0; b < stage.buffers.size(); ++b) {
    const BufferLayout& buffer = stage.buffers[b];
    const std::int64_t rank = buffer.expert ? expert_shard : dense_shard;
    EBB_ASSERT(rank >= 0 && rank < buffer.shards);
    if (buffer.division == Division::slices)
      add_slices(stage, b, rank, lists);
    else
      add_whole(stage, b, rank, lists);
  }
  return lists.take();
}

Numel owned(std::span<const Shard> shards) {
  Numel sum{0};
  for (const Shard& shard : shards) sum += shard.numel;
  return sum;
}

}  // namespace ebb
