#include "models/memory/driver_addresses.hpp"

#include <algorithm>

#include "models/errors.hpp"
#include "models/units.hpp"

namespace ebb::memory {

namespace {

constexpr std::uint64_t kTop = std::uint64_t{1} << 62;  // any: only the order of addresses has a meaning
constexpr std::int64_t kRegionStep = (32_MiB).value;
constexpr std::int64_t kContext = (8_MiB).value;

}  // namespace

void DriverAddresses::clear() {
  regions_.clear();
  holes_.clear();
  regions_made_ = 0;
  new_region(kRegionStep).used = kContext;
  holes_.push_back({regions_[0].begin + kContext, kRegionStep - kContext});
}

std::uint64_t DriverAddresses::take(std::int64_t bytes) {
  Region* recent = nullptr;
  auto hole = holes_.end();
  for (Region& region : regions_) {
    if (region.bytes - region.used < bytes || (recent != nullptr && region.age < recent->age)) continue;
    const auto candidate = smallest_hole(region, bytes);
    if (candidate == holes_.end()) continue;
    recent = &region;
    hole = candidate;
  }
  if (recent == nullptr) {
    recent = &new_region(bytes);
    hole = holes_.insert(first_hole_from(recent->begin), {recent->begin, recent->bytes});
  }
  const std::uint64_t address = hole->begin;
  recent->used += bytes;
  hole->begin += static_cast<std::uint64_t>(bytes);
  hole->bytes -= bytes;
  if (hole->bytes == 0) holes_.erase(hole);
  return address;
}

void DriverAddresses::give(std::uint64_t address, std::int64_t bytes) {
  const auto region =
      std::find_if(regions_.begin(), regions_.end(), [=](const Region& r) { return r.begin <= address; });
  EBB_ASSERT(region != regions_.end() && address + static_cast<std::uint64_t>(bytes) <= region->end());
  region->used -= bytes;
  if (region->used == 0) {
    holes_.erase(first_hole_from(region->begin), first_hole_from(region->end()));
    regions_.erase(region);
    return;
  }
  auto hole = holes_.insert(first_hole_from(address), {address, bytes});
  if (const auto next = hole + 1; next != holes_.end() && next->begin == hole->end() && next->begin != region->end()) {
    hole->bytes += next->bytes;
    holes_.erase(next);
  }
  if (hole != holes_.begin() && (hole - 1)->end() == address && address != region->begin) {
    (hole - 1)->bytes += hole->bytes;
    holes_.erase(hole);
  }
}

std::vector<DriverAddresses::Hole>::iterator DriverAddresses::first_hole_from(std::uint64_t address) {
  return std::lower_bound(holes_.begin(), holes_.end(), address,
                          [](const Hole& hole, std::uint64_t at) { return hole.begin < at; });
}

std::vector<DriverAddresses::Hole>::iterator DriverAddresses::smallest_hole(const Region& region, std::int64_t bytes) {
  auto best = holes_.end();
  for (auto hole = first_hole_from(region.begin); hole != holes_.end() && hole->begin < region.end(); ++hole) {
    if (hole->bytes >= bytes && (best == holes_.end() || hole->bytes < best->bytes)) best = hole;
  }
  return best;
}

/// An empty region for `bytes`, without a hole yet, in the highest gap that is larger than it.
DriverAddresses::Region& DriverAddresses::new_region(std::int64_t bytes) {
  const std::int64_t size = round_up(bytes, kRegionStep);
  std::uint64_t top = kTop;
  auto below = regions_.begin();
  while (below != regions_.end() && top - below->end() <= static_cast<std::uint64_t>(size)) {
    top = below->begin;
    ++below;
  }
  const Region region{top - static_cast<std::uint64_t>(size), size, 0, ++regions_made_};
  return *regions_.insert(below, region);
}

}  // namespace ebb::memory
