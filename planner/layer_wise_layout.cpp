// Source: Megatron-LM main, core/optimizer/layer_wise_optimizer.py at 2026-08: _compute_per_buffer_param_layout,
// _shard_params_ping_pong.
//
// Layout of a bucket for n ranks. Parameters arrive in reversed definition order until they reach the bucket size; a
// shared embedding is a bucket of its own. The largest comes first, each goes to the rank that has least so far (the
// first of several), at the next multiple of 64 elements. Every rank's part is as long as the longest, rounded up to
// lcm(64, alignment / n).
// Without the layout. All parameters of a group of ranks, smallest first (equal ones in the optimizers' order), go to
// ranks 0, 1, ..., n - 1, n - 1, ..., 1, 0, 0, 1, ...
#include "planner/layer_wise_layout.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "models/errors.hpp"

namespace ebb {

namespace {

constexpr std::int64_t kAlignment = 64;

/// Emits buckets one behind the other.
class LayerWiseBuilder {
 public:
  LayerWiseBuilder(const std::vector<Parameter>& parameters, std::int64_t alignment, BufferLayout& buffer)
      : parameters_(parameters),
        part_alignment_(std::lcm(kAlignment, alignment / buffer.shards)),
        buffer_(buffer),
        loads_(static_cast<std::size_t>(buffer.shards)) {}

  void emit(std::vector<std::uint32_t>& members) {
    if (members.empty()) return;
    std::stable_sort(members.begin(), members.end(), [this](std::uint32_t a, std::uint32_t b) {
      return parameters_[a].numel() > parameters_[b].numel();
    });
    std::fill(loads_.begin(), loads_.end(), 0);
    const std::size_t first = buffer_.ranges.size();
    Numel unpadded{0};
    for (const std::uint32_t member : members) {
      const auto least = std::min_element(loads_.begin(), loads_.end());
      const std::int64_t start = round_up(*least, kAlignment);
      *least = start + parameters_[member].numel().value;
      unpadded += parameters_[member].numel();
      buffer_.ranges.push_back({.parameter = member,
                                .bucket = static_cast<std::uint32_t>(buffer_.buckets.size()),
                                .start = {start},
                                .end = {*least},
                                .owner = static_cast<std::uint32_t>(least - loads_.begin())});
    }
    const std::int64_t part = round_up(*std::max_element(loads_.begin(), loads_.end()), part_alignment_);
    for (std::size_t i = first; i < buffer_.ranges.size(); ++i) {
      const Numel shift = buffer_.numel + Numel{part * buffer_.ranges[i].owner};
      buffer_.ranges[i].start += shift;
      buffer_.ranges[i].end += shift;
    }
    const Numel end = buffer_.numel + Numel{part * buffer_.shards};
    buffer_.buckets.push_back({.start = buffer_.numel, .end = end, .unpadded = unpadded});
    buffer_.unpadded += unpadded;
    buffer_.numel = end;
    members.clear();
  }

 private:
  const std::vector<Parameter>& parameters_;
  std::int64_t part_alignment_;
  BufferLayout& buffer_;
  std::vector<std::int64_t> loads_;  // elements by rank
};

/// Ranks 0 ... n - 1 and back, again and again.
class ThereAndBack {
 public:
  explicit ThereAndBack(std::int64_t ranks) : ranks_(ranks) {}
  std::uint32_t next() {
    const std::int64_t at = turn_++ % (2 * ranks_);
    return static_cast<std::uint32_t>(at < ranks_ ? at : 2 * ranks_ - 1 - at);
  }

 private:
  std::int64_t ranks_;
  std::int64_t turn_ = 0;
};

}  // namespace

bool is_orthogonalized(const OptimizerSettings& optimizer, const Parameter& parameter) {
  return optimizer.kind == OptimizerKind::muon && parameter.columns > 0 && !parameter.embedding_or_output;
}

void place_layer_wise(const std::vector<Parameter>& parameters, std::span<const std::uint32_t> members,
                      std::optional<Numel> limit, std::int64_t alignment, BufferLayout& buffer) {
  LayerWiseBuilder builder(parameters, alignment, buffer);
  std::vector<std::uint32_t> open;
  Numel numel{0};
  for (const std::uint32_t member : members) {
    open.push_back(member);
    numel += parameters[member].numel();
    if (!limit || numel < *limit) continue;
    builder.emit(open);
    numel = Numel{0};
  }
  builder.emit(open);
}

void deal_parameters(StageLayout& stage) {
  std::vector<ParameterRange*> dense;
  std::vector<ParameterRange*> expert;
  std::array<std::int64_t, 2> ranks = {1, 1};
  for (BufferLayout& buffer : stage.buffers) {
    ranks[buffer.expert] = buffer.shards;
    for (ParameterRange& range : buffer.ranges) (buffer.expert ? expert : dense).push_back(&range);
  }
  // Muon's groups come before Adam's, of each what decays first, and parameters in the order of their definition.
  const auto place = [&](const ParameterRange* range) {
    const Parameter& parameter = stage.parameters[range->parameter];
    return std::tuple(parameter.numel(), !is_orthogonalized(stage.optimizer, parameter), !parameter.decayed,
                      range->parameter);
  };
  for (std::vector<ParameterRange*>* all : {&dense, &expert}) {
    std::sort(all->begin(), all->end(),
              [&](const ParameterRange* a, const ParameterRange* b) { return place(a) < place(b); });
    ThereAndBack owners(ranks[all == &expert]);
    for (ParameterRange* range : *all) range->owner = owners.next();
  }
}

}  // namespace ebb
