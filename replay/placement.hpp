// Placement: which bytes hold which elements. Owned elements cut at shards, and the layout of optimizer state in a
// device buffer (program.hpp states the rules). Not here: the host's side (host_layout.hpp), and which buffer an op
// means (program_compiler.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/plan.hpp"

namespace ebb::replay {

/// The states in the order in which they lie in memory.
inline constexpr std::array<StateBits, 3> kStateOrder = {kExpAvg, kExpAvgSq, kMaster};
constexpr std::size_t index_of(StateBits state) { return state == kExpAvg ? 0 : state == kExpAvgSq ? 1 : 2; }

/// Owned elements of one shard, and the first one's padded element.
struct Piece {
  std::uint32_t shard = 0;
  ElementRange elements;
  std::int64_t at = 0;
};

/// The owned elements of a plan, shard by shard. Precondition of the constructor: numels are not negative and their sum
/// fits.
class OwnedElements {
 public:
  explicit OwnedElements(const Plan& plan);

  std::int64_t total() const { return begins_.back(); }
  ElementRange of_shard(std::size_t shard) const { return {begins_[shard], begins_[shard + 1]}; }
  /// The shard with the owned element. Precondition: 0 <= element < total().
  std::size_t shard_of(std::int64_t element) const;
  /// `range` cut at shards, without empty pieces. Precondition: it lies in [0, total()).
  std::vector<Piece> pieces(ElementRange range) const;

 private:
  const Plan* plan_;
  std::vector<std::int64_t> begins_;  // by shard, and the end
};

/// The parameter buffer: buckets lie one after another, each with its own element size (one byte where it is
/// quantised).
class ParameterBytes {
 public:
  explicit ParameterBytes(const Plan& plan);

  /// Place of a padded element. Precondition: it lies in some bucket.
  Bytes at(std::int64_t padded) const;
  bool quantized(std::int64_t padded) const;
  bool any_quantized() const { return any_quantized_; }
  Bytes bytes() const { return bytes_; }

 private:
  struct Span {
    std::int64_t begin = 0;  // padded elements
    std::int64_t size = 0;   // bytes of one
    Bytes at{0};
  };
  const Span& span_with(std::int64_t padded) const;

  std::vector<Span> spans_;  // ascending; neighbours of one size are one
  Bytes bytes_{0};
  bool any_quantized_ = false;
};

/// Where `states` of `range` lie in a device buffer, from its first byte.
class StateLayout {
 public:
  StateLayout() = default;
  StateLayout(const OwnedElements& owned, const Precision& precision, std::uint8_t states, ElementRange range,
              bool packed);

  std::uint8_t states() const { return states_; }
  ElementRange range() const { return range_; }
  bool packed() const { return packed_; }
  bool holds(std::uint8_t states, ElementRange range) const {
    return (states_ & states) == states && range.begin >= range_.begin && range.end <= range_.end;
  }
  /// Precondition: the state is held, and `element` is in the piece's shard and the layout's range.
  Bytes at(StateBits state, std::uint32_t shard, std::int64_t element) const;
  /// What the buffer must have at least.
  Bytes bytes() const { return bytes_; }

 private:
  std::uint8_t states_ = 0;
  ElementRange range_;
  bool packed_ = false;
  Bytes bytes_{0};
  std::array<std::int64_t, 3> size_{};  // of an element, by state
  std::uint32_t first_shard_ = 0;
  std::array<std::vector<std::int64_t>, 3> start_;  // by state and shard: where element `begin_` lies; packed: one
  std::vector<std::int64_t> begin_;
};

}  // namespace ebb::replay
