// The model of torch's caching allocator: its rules one by one, and what must hold for any sequence.
#include "sim/caching_allocator.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "models/errors.hpp"
#include "sim/torch_allocator.hpp"
#include "tests/catch.hpp"
#include "tests/sim/measured.hpp"

using namespace ebb;
using sim::CachingAllocator;
using Use = CachingAllocator::Use;

namespace {

constexpr StreamId kMain{0};
constexpr StreamId kSide{1};
constexpr std::int64_t kMiB = 1 << 20;

Bytes mib(std::int64_t n) { return {n * kMiB}; }

}  // namespace

TEST_CASE("caching allocator: a fresh tensor of any size costs what torch counted, and what allocated_bytes() says") {
  for (const auto& line : test::measured("torch-allocator.jsonl", "alloc")) {
    CachingAllocator allocator;
    allocator.allocate({line.at("req")}, kMain);
    CAPTURE(line.at("req"));
    REQUIRE(allocator.allocated().value == line.at("allocated"));
    REQUIRE(allocator.reserved().value == line.at("reserved"));
  }
  CachingAllocator allocator;
  for (std::int64_t bytes = 0; bytes < (std::int64_t{1} << 36); bytes += bytes / 7 + 1) {
    allocator.reset();
    const auto block = allocator.allocate({bytes}, kMain);
    CAPTURE(bytes);
    REQUIRE(allocator.allocated() == sim::allocated_bytes({bytes}));
    REQUIRE(allocator.bytes(block) == allocator.allocated());
  }
}

TEST_CASE("caching allocator: a freed block is reused by its stream alone, smallest sufficient one first") {
  CachingAllocator allocator;
  const auto large = allocator.allocate(mib(64), kMain);
  const auto medium = allocator.allocate(mib(32), kMain);
  const auto address = allocator.address(medium);
  allocator.free(large);
  allocator.free(medium);
  const auto other = allocator.allocate(mib(30), kSide);
  REQUIRE(allocator.reserved() == mib(64 + 32 + 30));
  const auto again = allocator.allocate(mib(30), kMain);
  REQUIRE(allocator.address(again) == address);
  REQUIRE(allocator.reserved() == mib(64 + 32 + 30));
  allocator.free(again);
  allocator.free(other);
  REQUIRE(allocator.allocated() == mib(0));
  allocator.empty_cache();
  REQUIRE(allocator.reserved() == mib(0));
  REQUIRE(allocator.peak_allocated() == mib(64 + 32));
  REQUIRE(allocator.peak_reserved() == mib(64 + 32 + 30));
}

TEST_CASE("caching allocator: a block in use elsewhere comes back when its last use has ended") {
  CachingAllocator allocator;
  const auto block = allocator.allocate(mib(40), kMain);
  const std::vector<Use> uses{3, 0};
  allocator.free(block, uses);
  REQUIRE(allocator.allocated() == mib(0));
  allocator.free(allocator.allocate(mib(40), kMain));
  REQUIRE(allocator.reserved() == mib(80));  // the first was not to be had
  allocator.end(3);
  allocator.end(3);  // a second time changes nothing
  const auto second = allocator.allocate(mib(40), kMain);
  allocator.allocate(mib(40), kMain);
  REQUIRE(allocator.reserved() == mib(120));
  allocator.end(0);
  allocator.allocate(mib(40), kMain);
  REQUIRE(allocator.reserved() == mib(120));
  allocator.free(second);
}

TEST_CASE("caching allocator: when the driver has no more, uses are waited for and the whole cache goes back") {
  CachingAllocator allocator({.capacity = mib(100)});
  const auto small = allocator.allocate({1000}, kMain);
  allocator.free(allocator.allocate(mib(40), kMain));
  const auto waiting = allocator.allocate(mib(40), kSide);
  allocator.free(waiting, std::vector<Use>{0});
  REQUIRE(allocator.reserved() == mib(82));
  const auto big = allocator.allocate(mib(98), kMain);
  REQUIRE(allocator.reserved() == mib(100));
  REQUIRE(allocator.retries() == 1);
  allocator.end(0);  // was waited for
  allocator.free(big);
  REQUIRE_THROWS_AS(allocator.allocate(mib(100), kMain), InputError);
  REQUIRE(allocator.reserved() == mib(2));  // even so, the cache is gone
  allocator.free(small);
  REQUIRE_NOTHROW(allocator.allocate(mib(100), kMain));
  REQUIRE_THROWS_AS(allocator.allocate({std::numeric_limits<std::int64_t>::max()}, kMain), InputError);
}

TEST_CASE("caching allocator: an expandable segment grows by pages and gives back the pages that are wholly free") {
  CachingAllocator allocator({.capacity = mib(1000), .expandable_segments = true});
  const auto first = allocator.allocate(mib(30), kMain);
  REQUIRE(allocator.reserved() == mib(40));
  const auto second = allocator.allocate(mib(30), kMain);
  REQUIRE(allocator.reserved() == mib(60));
  REQUIRE(allocator.address(second) == allocator.address(first) + static_cast<std::uint64_t>(30 * kMiB));
  allocator.free(first);
  allocator.empty_cache();
  REQUIRE(allocator.reserved() == mib(40));  // the page in which both lie stays
  const auto third = allocator.allocate(mib(30), kMain);
  REQUIRE(allocator.reserved() == mib(60));
  REQUIRE(allocator.address(third) == allocator.address(first));
  allocator.free(second);
  allocator.free(third);
  allocator.empty_cache();
  REQUIRE(allocator.reserved() == mib(0));
}
