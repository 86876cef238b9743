// HostLayout: where the host keeps the state that a plan moves or steps there.
//
// Packed plans have one region: the ranges of their copies in ascending order, each laid out like the slot; copies of a
// part of the states (a second pass over masters) find it there. Other plans
// have a block a shard and state, each rounded up to a power of two as torch's pinned allocator does (measured:
// 104,857,600 B -> 134,217,728), state by state; gradients on their way to the host's Adam have blocks of their own.
// Moments that the host steps are pageable, fp32, state by state without gaps.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "replay/placement.hpp"

namespace ebb::replay {

/// What of an op the host sees. Parameters on the host are the masters that it steps.
struct HostUse {
  std::uint8_t states = 0;  // exp_avg, exp_avg_sq, master, grads
  ElementRange range;
  bool packed = false;
};

class HostLayout {
 public:
  /// `copies`: every copy of the plan. `stepped`: the elements that the host steps, if any. Returns false when copies
  /// of all states of packed buffers are cut differently, or go along with copies of others.
  bool build(const OwnedElements& owned, const Precision& precision, const std::vector<HostUse>& copies,
             std::optional<ElementRange> stepped);

  Bytes pinned() const { return pinned_; }
  Bytes pageable() const { return pageable_; }
  std::optional<ElementRange> stepped() const { return stepped_; }

  /// First byte of the region that a packed copy of all its states is; unset where that is none.
  std::optional<Bytes> region(std::uint8_t states, ElementRange range) const;
  bool packed() const { return !regions_.empty(); }

  /// Pinned place of a state (or kGrads) of `element`; unset where the host has none.
  std::optional<Bytes> at(StateBits state, std::uint32_t shard, std::int64_t element) const;
  /// Pageable place of a moment that the host steps. Precondition: the element is in stepped().
  Bytes moment(StateBits state, std::int64_t element) const;
  /// Where the region that `element` lies in ends; the largest number where there are no regions.
  std::int64_t region_end(std::int64_t element) const;

 private:
  struct Region {
    Bytes at{0};
    std::int64_t end = 0;
    StateLayout layout;
  };
  bool build_regions(const OwnedElements& owned, const Precision& precision, const std::vector<HostUse>& copies);
  void build_blocks(const OwnedElements& owned, const Precision& precision, const std::vector<HostUse>& copies);
  const std::pair<const std::int64_t, Region>* region_with(std::int64_t element) const;

  static constexpr std::size_t kGradsIndex = 3;
  Bytes pinned_{0};
  Bytes pageable_{0};
  std::optional<ElementRange> stepped_;
  std::map<std::int64_t, Region> regions_;           // by first element
  std::array<std::vector<std::int64_t>, 4> blocks_;  // by state (then gradients) and shard; -1: none
  std::array<std::int64_t, 4> size_{};               // of an element there
  std::vector<std::int64_t> begins_;                 // by shard, and the end
};

}  // namespace ebb::replay
