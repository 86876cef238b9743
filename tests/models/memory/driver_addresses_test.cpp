// Where the driver puts segments: the rule read off recorded pointers, and that it never gives the same bytes twice.
#include "models/memory/driver_addresses.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "models/units.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using memory::DriverAddresses;

namespace {
constexpr std::int64_t kUnit = (2_MiB).value;
}

// tests/data/measured/torch_allocator_trace.py, sequence "boundary" of an earlier recording: pointers in units of 2
// MiB, less a constant.
TEST_CASE("driver addresses: recorded segments lie where the rule puts them") {
  const std::vector<std::pair<int, int>> recorded{{10, 892}, {1, 902},  {1, 903}, {6, 872}, {17, 840}, {10, 857},
                                                  {10, 878}, {11, 824}, {5, 835}, {6, 808}, {17, 776}};
  DriverAddresses addresses;
  std::uint64_t first = 0;
  for (const auto& [size, at] : recorded) {
    const std::uint64_t address = addresses.take(size * kUnit);
    if (first == 0) first = address - 892 * static_cast<std::uint64_t>(kUnit);
    REQUIRE((address - first) / static_cast<std::uint64_t>(kUnit) == static_cast<std::uint64_t>(at));
  }
}

TEST_CASE("driver addresses: an emptied region is given up, and a gap it leaves must be larger than a new one") {
  DriverAddresses addresses;
  addresses.take(12 * kUnit);  // fills the first region
  const auto a = addresses.take(16 * kUnit);
  const auto b = addresses.take(16 * kUnit);
  REQUIRE(b + static_cast<std::uint64_t>(16 * kUnit) == a);
  addresses.give(a, 16 * kUnit);
  const auto c = addresses.take(16 * kUnit);
  REQUIRE(c < b);
  addresses.give(b, 16 * kUnit);
  REQUIRE(addresses.take(16 * kUnit) == a);  // now the gap holds two
}

TEST_CASE("driver addresses: segments never overlap, and everything given back leaves what a fresh one has") {
  std::mt19937_64 random(5);
  DriverAddresses addresses;
  std::vector<std::pair<std::uint64_t, std::int64_t>> live;
  for (int i = 0; i < 2000; ++i) {
    if (random() % 5 < 2 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      addresses.give(live.back().first, live.back().second);
      live.pop_back();
      continue;
    }
    const std::int64_t bytes = static_cast<std::int64_t>(1 + random() % (random() % 2 == 0 ? 12 : 60)) * kUnit;
    const std::uint64_t at = addresses.take(bytes);
    for (const auto& [other, size] : live) {
      REQUIRE((at + static_cast<std::uint64_t>(bytes) <= other || other + static_cast<std::uint64_t>(size) <= at));
    }
    live.emplace_back(at, bytes);
  }
  for (const auto& [at, bytes] : live) addresses.give(at, bytes);
  DriverAddresses fresh;
  for (const int size : {3, 10, 20, 2, 16, 40}) REQUIRE(addresses.take(size * kUnit) == fresh.take(size * kUnit));
}
