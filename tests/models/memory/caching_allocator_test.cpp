// The model of torch's caching allocator: its rules one by one, and what must hold for any sequence.
#include "models/memory/caching_allocator.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "models/errors.hpp"
#include "models/memory/torch_allocator.hpp"
#include "tests/catch.hpp"
#include "tests/measured.hpp"

using namespace ebb;
using memory::CachingAllocator;
using Use = CachingAllocator::Use;

namespace {

constexpr StreamId kMain{0};
constexpr StreamId kSide{1};
constexpr std::int64_t kMiB = 1 << 20;

Bytes mib(std::int64_t n) { return {n * kMiB}; }

/// A random sequence of calls on three streams. Checks after every call what must hold for any sequence, and notes what
/// the allocator counted.
class RandomCalls {
 public:
  RandomCalls(CachingAllocator& allocator, Bytes capacity, unsigned seed)
      : allocator_(allocator), capacity_(capacity), random_(seed) {}

  std::vector<std::int64_t> run(int calls) {
    for (int i = 0; i < calls; ++i) {
      step();
      REQUIRE(allocator_.allocated() <= allocator_.reserved());
      REQUIRE(allocator_.reserved() <= capacity_);
      REQUIRE(allocator_.allocated() <= allocator_.peak_allocated());
      REQUIRE(allocator_.reserved() <= allocator_.peak_reserved());
      if (i % 16 == 0) check_live();
      noted_.push_back(allocator_.allocated().value);
      noted_.push_back(allocator_.reserved().value);
    }
    return noted_;
  }

  void free_everything() {
    for (const auto block : live_) allocator_.free(block);
    live_.clear();
    REQUIRE(allocator_.allocated() == Bytes{0});
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  void step() {
    const std::uint32_t what = below(100);
    if (what == 0) {
      allocator_.empty_cache();
    } else if (what < 5) {
      allocator_.end(below(4));
    } else if (what < 50 && !live_.empty()) {
      std::swap(live_[below(static_cast<std::uint32_t>(live_.size()))], live_.back());
      const std::vector<Use> uses{below(2), 2 + below(2)};
      allocator_.free(live_.back(), std::span(uses).first(what < 15 ? what % 3 : 0));
      live_.pop_back();
    } else {
      const std::int64_t bytes = random_() % (std::uint64_t{1} << (8 + below(20)));  // up to 128 MiB
      try {
        live_.push_back(allocator_.allocate({bytes}, StreamId{below(3)}));
        REQUIRE(allocator_.bytes(live_.back()).value >= bytes);
      } catch (const InputError&) {
        free_everything();
      }
    }
  }

  /// Live blocks do not overlap, and their sum is what counts as allocated.
  void check_live() {
    auto sorted = live_;
    const auto address = [this](CachingAllocator::Block b) { return allocator_.address(b); };
    std::erase(sorted, CachingAllocator::Block{});
    std::sort(sorted.begin(), sorted.end(), [&](auto a, auto b) { return address(a) < address(b); });
    Bytes sum;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      sum += allocator_.bytes(sorted[i]);
      if (i + 1 == sorted.size()) continue;
      REQUIRE(address(sorted[i]) + static_cast<std::uint64_t>(allocator_.bytes(sorted[i]).value) <=
              address(sorted[i + 1]));
    }
    REQUIRE(sum == allocator_.allocated());
  }

  CachingAllocator& allocator_;
  Bytes capacity_;
  std::mt19937_64 random_;
  std::vector<CachingAllocator::Block> live_;
  std::vector<std::int64_t> noted_;
};

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
    REQUIRE(allocator.allocated() == memory::allocated_bytes({bytes}));
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

TEST_CASE("caching allocator: of equal free blocks the lowest is taken, where the driver puts segments") {
  CachingAllocator allocator;
  const auto first = allocator.allocate(mib(40), kMain);
  const auto second = allocator.allocate(mib(40), kMain);
  const auto lower = std::min(allocator.address(first), allocator.address(second));
  REQUIRE(lower == allocator.address(second));  // the driver takes new addresses below
  allocator.free(second);
  allocator.free(first);
  REQUIRE(allocator.address(allocator.allocate(mib(40), kMain)) == lower);
}

TEST_CASE("caching allocator: a request between the small and the own segment shares one of 20 MiB") {
  CachingAllocator allocator;
  const auto a = allocator.allocate({kMiB + 1}, kMain);
  const auto b = allocator.allocate(mib(8), kMain);
  REQUIRE(allocator.reserved() == mib(20));
  allocator.free(a);
  allocator.free(b);
  // Merged again: 19 MiB fit, and the 1 MiB left is not worth splitting off.
  allocator.allocate(mib(19), kMain);
  REQUIRE(allocator.reserved() == mib(20));
  REQUIRE(allocator.allocated() == mib(20));
}

TEST_CASE("caching allocator: any sequence conserves bytes, never overlaps, and comes back to nothing") {
  for (const bool expandable : {false, true}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      CAPTURE(expandable, seed);
      const Bytes capacity = mib(seed % 2 == 0 ? 250 : 100'000);
      CachingAllocator allocator({.capacity = capacity, .expandable_segments = expandable});
      RandomCalls calls(allocator, capacity, seed);
      calls.run(600);
      calls.free_everything();
      allocator.empty_cache();
      REQUIRE(allocator.reserved() == Bytes{0});
    }
  }
}

TEST_CASE("caching allocator: the same calls give the same bytes, fresh, after a reset and in a copy") {
  for (const bool expandable : {false, true}) {
    const memory::CachingAllocatorOptions options{.capacity = mib(200), .expandable_segments = expandable};
    CachingAllocator fresh(options);
    const auto expected = RandomCalls(fresh, options.capacity, 7).run(800);
    CachingAllocator used(options);
    RandomCalls(used, options.capacity, 8).run(300);
    used.reset();
    CachingAllocator copy = used;
    REQUIRE(RandomCalls(used, options.capacity, 7).run(800) == expected);
    REQUIRE(RandomCalls(copy, options.capacity, 7).run(800) == expected);
    REQUIRE(copy.driver_allocations() == fresh.driver_allocations());
    REQUIRE(copy.retries() == fresh.retries());
    REQUIRE(fresh.retries() > 0);
  }
}

namespace {

/// A driver that hands out 100 MiB and keeps a list.
struct FakeDriver {
  std::vector<std::pair<std::uint64_t, std::int64_t>> given;
  int refusals = 0;
  int waits = 0;

  memory::SegmentSource source() {
    return {.take =
                [this](std::uint64_t address, Bytes bytes) {
                  std::int64_t total = bytes.value;
                  for (const auto& segment : given) total += segment.second;
                  if (total > 100 * kMiB) return ++refusals, false;
                  given.emplace_back(address, bytes.value);
                  return true;
                },
            .give =
                [this](std::uint64_t address, Bytes bytes) {
                  REQUIRE(std::erase(given, std::pair{address, bytes.value}) == 1);
                },
            .wait = [this] { ++waits; }};
  }
};

}  // namespace

TEST_CASE("caching allocator: real segments are asked for and given back exactly as they are reserved") {
  FakeDriver driver;
  CachingAllocator allocator({}, driver.source());
  const auto small = allocator.allocate({1000}, kMain);
  const auto first = allocator.allocate(mib(40), kMain);
  const auto second = allocator.allocate(mib(40), kMain);
  REQUIRE(driver.given.size() == 3);
  REQUIRE(allocator.reserved() == mib(82));
  for (const auto block : {small, first, second}) {  // every block lies in a segment that was given
    const auto holds = [&](const auto& segment) {
      return segment.first <= allocator.address(block) &&
             allocator.address(block) + static_cast<std::uint64_t>(allocator.bytes(block).value) <=
                 segment.first + static_cast<std::uint64_t>(segment.second);
    };
    REQUIRE(std::count_if(driver.given.begin(), driver.given.end(), holds) == 1);
  }
  allocator.free(first);
  allocator.free(allocator.allocate(mib(30), kMain));  // cached: the driver hears nothing
  REQUIRE(driver.given.size() == 3);
  REQUIRE(driver.waits == 0);

  allocator.free(second, std::vector<Use>{0});
  const auto big = allocator.allocate(mib(90), kMain);  // refused, then after waiting and giving back 80 MiB granted
  REQUIRE(driver.refusals == 1);
  REQUIRE(driver.waits == 1);
  REQUIRE(allocator.reserved() == mib(92));
  REQUIRE_THROWS_AS(allocator.allocate(mib(20), kMain), InputError);
  REQUIRE(driver.refusals == 3);
  allocator.free(big);
  allocator.free(small);
  allocator.empty_cache();
  REQUIRE(driver.given.empty());
}

TEST_CASE("caching allocator: real memory changes nothing in what is counted") {
  const auto unlimited = [] {
    return memory::SegmentSource{
        .take = [](std::uint64_t, Bytes) { return true; }, .give = [](std::uint64_t, Bytes) {}, .wait = [] {}};
  };
  for (const unsigned seed : {1U, 2U, 3U}) {
    CachingAllocator model({.capacity = mib(3000)});
    CachingAllocator backed({.capacity = mib(3000)}, unlimited());
    REQUIRE(RandomCalls(model, mib(3000), seed).run(2000) == RandomCalls(backed, mib(3000), seed).run(2000));
  }
}
