#include "replay/placement.hpp"

#include <algorithm>

namespace ebb::replay {

namespace {

/// Tensors in one flat buffer start at multiples of this (program.hpp).
constexpr std::int64_t kTensorAlignment = 256;

}  // namespace

OwnedElements::OwnedElements(const Plan& plan) : plan_(&plan), begins_{0} {
  begins_.reserve(plan.shards.size() + 1);
  for (const PlanShard& shard : plan.shards) begins_.push_back(begins_.back() + shard.numel.value);
}

std::size_t OwnedElements::shard_of(std::int64_t element) const {
  return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), element) - begins_.begin()) - 1;
}

std::vector<Piece> OwnedElements::pieces(ElementRange range) const {
  std::vector<Piece> pieces;
  if (range.begin >= range.end) return pieces;
  for (std::size_t shard = shard_of(range.begin); shard < plan_->shards.size() && begins_[shard] < range.end; ++shard) {
    const ElementRange elements{std::max(range.begin, begins_[shard]), std::min(range.end, begins_[shard + 1])};
    if (elements.begin >= elements.end) continue;
    pieces.push_back(
        {static_cast<std::uint32_t>(shard), elements, plan_->shards[shard].at.value + elements.begin - begins_[shard]});
  }
  return pieces;
}

ParameterBytes::ParameterBytes(const Plan& plan) {
  const std::int64_t plain = size_of(plan.precision.params);
  for (const PlanBucket& bucket : plan.buckets) {
    const std::int64_t size = bucket.quantized ? 1 : plain;
    any_quantized_ |= bucket.quantized;
    if (spans_.empty() || spans_.back().size != size) spans_.push_back({bucket.begin.value, size, bytes_});
    bytes_ += bytes_of(bucket.numel(), size);
  }
}

const ParameterBytes::Span& ParameterBytes::span_with(std::int64_t padded) const {
  const auto behind = std::upper_bound(spans_.begin(), spans_.end(), padded,
                                       [](std::int64_t element, const Span& span) { return element < span.begin; });
  return *(behind - 1);
}

Bytes ParameterBytes::at(std::int64_t padded) const {
  const Span& span = span_with(padded);
  return span.at + Bytes{(padded - span.begin) * span.size};
}

bool ParameterBytes::quantized(std::int64_t padded) const { return span_with(padded).size == 1; }

StateLayout::StateLayout(const OwnedElements& owned, const Precision& precision, std::uint8_t states,
                         ElementRange range, bool packed)
    : states_(states), range_(range), packed_(packed) {
  std::vector<Piece> pieces;
  if (packed) {
    pieces.push_back({0, range, 0});
  } else {
    pieces = owned.pieces(range);
  }
  if (pieces.empty()) return;
  first_shard_ = pieces.front().shard;
  const std::size_t shards = pieces.back().shard - first_shard_ + 1;
  begin_.resize(shards);
  for (const Piece& piece : pieces) begin_[piece.shard - first_shard_] = piece.elements.begin;
  std::int64_t at = 0;
  for (const StateBits state : kStateOrder) {
    if ((states & state) == 0) continue;
    const std::size_t s = index_of(state);
    size_[s] = bytes_per_element(precision, state);
    start_[s].resize(shards);
    for (const Piece& piece : pieces) {
      if (!packed) at = round_up(at, kTensorAlignment);
      start_[s][piece.shard - first_shard_] = at;
      at += piece.elements.numel().value * size_[s];
    }
  }
  bytes_ = {at};
}

Bytes StateLayout::at(StateBits state, std::uint32_t shard, std::int64_t element) const {
  const std::size_t s = index_of(state);
  const std::size_t i = packed_ ? 0 : shard - first_shard_;
  return {start_[s][i] + (element - begin_[i]) * size_[s]};
}

}  // namespace ebb::replay
