#include "replay/host_layout.hpp"

#include <limits>

#include "models/memory/torch_allocator.hpp"

namespace ebb::replay {

namespace {

constexpr std::int64_t kHostAdamBytes = 4;  // the host's Adam works in fp32

}  // namespace

bool HostLayout::build(const OwnedElements& owned, const Precision& precision, const std::vector<HostUse>& copies,
                       std::optional<ElementRange> stepped) {
  stepped_ = stepped;
  if (stepped) pageable_ = {2 * kHostAdamBytes * stepped->numel().value};
  bool packed = false;
  bool tensors = stepped.has_value();
  for (const HostUse& copy : copies) (copy.packed ? packed : tensors) = true;
  if (packed && tensors) return false;
  if (packed) return build_regions(owned, precision, copies);
  build_blocks(owned, precision, copies);
  return true;
}

bool HostLayout::build_regions(const OwnedElements& owned, const Precision& precision,
                               const std::vector<HostUse>& copies) {
  std::uint8_t all = 0;
  for (const HostUse& copy : copies) all = static_cast<std::uint8_t>(all | copy.states);
  std::map<std::int64_t, HostUse> cuts;
  for (const HostUse& copy : copies) {
    if (copy.states != all) continue;
    const auto [known, fresh] = cuts.emplace(copy.range.begin, copy);
    if (!fresh && known->second.range != copy.range) return false;
  }
  std::int64_t behind = 0;
  for (const auto& [begin, cut] : cuts) {
    if (begin < behind) return false;
    behind = cut.range.end;
    StateLayout layout(owned, precision, cut.states, cut.range, true);
    const Bytes bytes = layout.bytes();
    regions_.emplace(begin, Region{pinned_, behind, std::move(layout)});
    pinned_ += bytes;
  }
  return true;
}

void HostLayout::build_blocks(const OwnedElements& owned, const Precision& precision,
                              const std::vector<HostUse>& copies) {
  std::array<std::vector<bool>, 4> used;
  for (const HostUse& copy : copies) {
    for (std::size_t s = 0; s < used.size(); ++s) {
      const StateBits state = s == kGradsIndex ? kGrads : kStateOrder[s];
      if ((copy.states & state) == 0) continue;
      for (const Piece& piece : owned.pieces(copy.range)) {
        if (used[s].size() <= piece.shard) used[s].resize(piece.shard + 1);
        used[s][piece.shard] = true;
      }
    }
  }
  for (std::size_t s = 0; s < used.size(); ++s) {
    size_[s] = s == kGradsIndex || stepped_ ? kHostAdamBytes : bytes_per_element(precision, kStateOrder[s]);
    blocks_[s].assign(used[s].size(), -1);
    for (std::size_t shard = 0; shard < used[s].size(); ++shard) {
      if (!used[s][shard]) continue;
      blocks_[s][shard] = pinned_.value;
      pinned_ += memory::pinned_block_bytes(bytes_of(owned.of_shard(shard).numel(), size_[s]));
    }
    for (std::size_t shard = begins_.size(); shard < used[s].size(); ++shard)
      begins_.push_back(owned.of_shard(shard).begin);
  }
}

const std::pair<const std::int64_t, HostLayout::Region>* HostLayout::region_with(std::int64_t element) const {
  auto region = regions_.upper_bound(element);
  if (region == regions_.begin()) return nullptr;
  --region;
  return element < region->second.end ? &*region : nullptr;
}

std::optional<Bytes> HostLayout::at(StateBits state, std::uint32_t shard, std::int64_t element) const {
  if (packed()) {
    const auto* region = region_with(element);
    if (region == nullptr || (region->second.layout.states() & state) == 0) return std::nullopt;
    return region->second.at + region->second.layout.at(state, shard, element);
  }
  const std::size_t s = state == kGrads ? kGradsIndex : index_of(state);
  if (shard >= blocks_[s].size() || blocks_[s][shard] < 0) return std::nullopt;
  return Bytes{blocks_[s][shard] + (element - begins_[shard]) * size_[s]};
}

std::optional<Bytes> HostLayout::region(std::uint8_t states, ElementRange range) const {
  const auto* region = region_with(range.begin);
  if (region == nullptr || region->second.layout.range() != range || region->second.layout.states() != states)
    return std::nullopt;
  return region->second.at;
}

Bytes HostLayout::moment(StateBits state, std::int64_t element) const {
  const std::int64_t before = state == kExpAvg ? 0 : stepped_->numel().value;
  return {kHostAdamBytes * (before + element - stepped_->begin)};
}

std::int64_t HostLayout::region_end(std::int64_t element) const {
  const auto* region = packed() ? region_with(element) : nullptr;
  return region != nullptr ? region->second.end : std::numeric_limits<std::int64_t>::max();
}

}  // namespace ebb::replay
