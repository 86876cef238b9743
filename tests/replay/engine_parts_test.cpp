// Parts of the engine that need no GPU: the choice of the repeat to show, how stand-ins fill their time, groups of
// collectives, the breakable barrier.
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "models/errors.hpp"
#include "replay/barrier.hpp"
#include "replay/groups.hpp"
#include "replay/stand_in.hpp"
#include "replay/timing.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using namespace ebb::replay;

// By hand: products of 80 of an op's 100 took 90 of 110 (its other work takes 20): 80 * 80 / 90 next time.
TEST_CASE("stand-ins that took too long get fewer products, in proportion") {
  CHECK(corrected({80'000}, {100'000}, {110'000}, {20'000}).value == 71'111);
  CHECK(corrected({80'000}, {100'000}, {100'000}, {20'000}).value == 80'000);
  CHECK(corrected({80'000}, {100'000}, {500'000}, {20'000}).value == 60'000);  // by a quarter at most
  CHECK(corrected({60'000}, {100'000}, {21'000}, {20'000}).value == 80'000);   // ... or a third more
  CHECK(corrected({0}, {100'000}, {110'000}, {100'000}).value == 0);
}

TEST_CASE("the repeat shown is the median: the lower of two, the first of equal ones") {
  CHECK(median_index(std::vector<Ticks>{{7}}) == 0);
  CHECK(median_index(std::vector<Ticks>{{9}, {1}, {5}}) == 2);
  CHECK(median_index(std::vector<Ticks>{{9}, {1}, {5}, {6}}) == 2);
  CHECK(median_index(std::vector<Ticks>{{3}, {3}, {1}, {3}, {9}}) == 0);
}

TEST_CASE("a repeat is as long as on its slowest rank") {
  const std::vector<std::vector<Ticks>> steps{{{10}, {30}, {20}}, {{15}, {25}, {20}}};
  CHECK(slowest_of_ranks(steps) == std::vector<Ticks>{{15}, {30}, {20}});
}

TEST_CASE("products fill a time to within half of the smallest, largest first") {
  const std::vector<GemmTime> times{{4096, {1000}}, {2048, {130}}, {1024, {20}}};
  CHECK(fill_time({0}, times).empty());
  CHECK(fill_time({-5}, times).empty());
  CHECK(fill_time({9}, times).empty());  // less than half of the smallest
  CHECK(fill_time({10}, times) == std::vector<GemmCount>{{1024, 1}});
  CHECK(fill_time({3 * 1000 + 2 * 130 + 4 * 20}, times) == std::vector<GemmCount>{{4096, 3}, {2048, 2}, {1024, 4}});
  for (std::int64_t left = 1; left < 20000; left += 37) {
    std::int64_t filled = 0;
    for (const GemmCount& gemm : fill_time({left}, times)) {
      filled += gemm.count * (gemm.size == 4096 ? 1000 : gemm.size == 2048 ? 130 : 20);
    }
    CHECK(std::abs(filled - left) <= 10);
  }
}

TEST_CASE("shares of consecutive ranges cover a buffer without gaps, also where a product would overflow") {
  const Bytes whole{100'000'000'001};
  const Numel elements{70'000'000'003};
  const std::vector<std::int64_t> cuts{0, 1, 12'345'678'901, 69'999'999'999, elements.value};
  std::int64_t at = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const ByteRange share = share_of(whole, {cuts[i], cuts[i + 1]}, elements);
    CHECK(share.at.value == at);
    at += share.bytes.value;
  }
  CHECK(at == whole.value);
}

TEST_CASE("a group is complete when all its ranks are here; absent ones are an error, or left out when alone") {
  const std::vector<CommGroup> groups{{0, 1, 2}, {0, 1, 4}, {1, 2, 2}};
  const std::vector<std::int64_t> present{0, 1, 3};
  CHECK(missing_ranks(groups[0], present).empty());
  CHECK(missing_ranks(groups[1], present) == std::vector<std::int64_t>{2});
  std::vector<std::string> remarks;
  CHECK(complete_groups(groups, present, true, remarks) == std::vector<CommGroup>{{0, 1, 2}, {1, 2, 2}});
  REQUIRE(remarks.size() == 1);
  CHECK(remarks[0].find("(2)") != std::string::npos);
  try {
    complete_groups(groups, present, false, remarks);
    FAIL("rank 2 is not here");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("--alone") != std::string::npos);
  }
}

TEST_CASE("a barrier lets nobody on before all have come, round after round, and runs its last action once") {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  Barrier barrier(kThreads);
  std::atomic<int> come{0};
  std::atomic<int> early{0};
  int lasts = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int round = 1; round <= kRounds; ++round) {
          come.fetch_add(1);
          barrier.meet([&] { ++lasts; });
          if (come.load() < round * kThreads) early.fetch_add(1);
        }
      });
    }
  }
  CHECK(early.load() == 0);
  CHECK(lasts == kRounds);
}

TEST_CASE("a broken barrier lets go of those who wait and keeps the first error") {
  Barrier barrier(3);
  std::atomic<int> stopped{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        try {
          barrier.meet();
        } catch (const Stopped&) {
          stopped.fetch_add(1);
        }
      });
    }
    barrier.break_with(std::make_exception_ptr(std::runtime_error("first")));
    barrier.break_with(std::make_exception_ptr(std::runtime_error("second")));
  }
  CHECK(stopped.load() == 2);
  CHECK_THROWS_WITH(barrier.rethrow(), "first");
}
