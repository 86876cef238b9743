// Placement in an arena: never two slots on the same bytes at the same time, and close to the best there is.
#include "models/memory/arena.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using namespace ebb;
using memory::ArenaSlot;

namespace {

bool over_each_other(const ArenaSlot& a, const ArenaSlot& b) {
  for (const memory::ArenaLife& x : a.lives)
    for (const memory::ArenaLife& y : b.lives)
      if (x.first <= y.last && y.first <= x.last) return true;
  return false;
}

void require_valid(const std::vector<ArenaSlot>& slots, const memory::Arena& arena) {
  REQUIRE(arena.offsets.size() == slots.size());
  REQUIRE(arena.size >= arena.max_live);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    REQUIRE(arena.offsets[i].value % memory::kArenaAlignment.value == 0);
    REQUIRE(arena.offsets[i] >= Bytes{0});
    REQUIRE(arena.offsets[i] + slots[i].bytes <= arena.size);
    for (std::size_t j = 0; j < i; ++j) {
      const bool in_time = over_each_other(slots[i], slots[j]);
      const bool in_space =
          arena.offsets[i] < arena.offsets[j] + slots[j].bytes && arena.offsets[j] < arena.offsets[i] + slots[i].bytes;
      REQUIRE_FALSE((in_time && in_space));
    }
  }
}

/// At every time by hand: what is live at the busiest.
std::int64_t busiest(const std::vector<ArenaSlot>& slots, std::int64_t times) {
  std::int64_t most = 0;
  for (std::int64_t t = 0; t < times; ++t) {
    std::int64_t live = 0;
    for (const ArenaSlot& slot : slots)
      for (const memory::ArenaLife& life : slot.lives)
        if (life.first <= t && t <= life.last) live += round_up(slot.bytes.value, 256);
    most = std::max(most, live);
  }
  return most;
}

struct RandomSlots {
  std::size_t count = 1;
  std::int64_t times = 1;
  std::int64_t units = 1;  // of 256 bytes, at most
  int lives = 1;           // at most
};

std::vector<ArenaSlot> random_slots(std::mt19937_64& random, const RandomSlots& how) {
  std::vector<ArenaSlot> slots(how.count);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  for (ArenaSlot& slot : slots) {
    slot.bytes = {below(how.units * 256)};
    std::int64_t free = 0;  // from here on it may live again
    for (int l = 0; l < how.lives && free < how.times; ++l) {
      const std::int64_t first = free + below(how.times - free);
      const std::int64_t last = first + below(how.times - first);
      slot.lives.push_back({first, last});
      free = last + 1;
    }
    slot.yields = how.lives > 1 && below(2) == 0;
  }
  return slots;
}

/// The optimum. Lowering every slot of a best placement in order of its offsets as far as it goes keeps it a best one,
/// so some order of "lowest place that is free" is optimal: try all.
std::int64_t optimum(const std::vector<ArenaSlot>& slots) {
  std::vector<std::size_t> order(slots.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  do {
    std::vector<std::int64_t> at(slots.size(), -1);
    std::int64_t size = 0;
    for (const std::size_t i : order) {
      std::int64_t offset = 0;
      const std::int64_t bytes = round_up(slots[i].bytes.value, 256);
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t j = 0; j < slots.size(); ++j) {
          if (at[j] < 0 || !over_each_other(slots[i], slots[j])) continue;
          const std::int64_t end = at[j] + round_up(slots[j].bytes.value, 256);
          if (offset < end && at[j] < offset + bytes) {
            offset = end;
            moved = true;
          }
        }
      }
      at[i] = offset;
      size = std::max(size, offset + bytes);
    }
    best = std::min(best, size);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

}  // namespace

TEST_CASE("arena: slots that live one after another share bytes, others do not") {
  const std::vector<ArenaSlot> slots{{{1000}, {{0, 1}}}, {{500}, {{2, 3}}}, {{300}, {{1, 2}}}, {{0}, {{0, 9}}}};
  const auto arena = memory::place_in_arena(slots);
  require_valid(slots, arena);
  REQUIRE(arena.max_live == Bytes{1024 + 512});
  REQUIRE(arena.size == arena.max_live);
  REQUIRE(memory::place_in_arena({}).size == Bytes{0});
}

TEST_CASE("arena: a slot lies at one place in all its lives, and others use it in between") {
  // The first comes back when the second has gone; the third lives in the gap and the fourth beside the first.
  const std::vector<ArenaSlot> slots{
      {{1024}, {{0, 1}, {6, 7}}}, {{512}, {{2, 5}}}, {{512}, {{3, 4}}}, {{256}, {{7, 9}}}};
  const auto arena = memory::place_in_arena(slots);
  require_valid(slots, arena);
  REQUIRE(arena.max_live == Bytes{1024 + 256});
  REQUIRE(arena.size == arena.max_live);
  // Between its lives nothing of it is live; in both ends everything is.
  const std::vector<ArenaSlot> ends{{{256}, {{0, 1}, {4, 5}}}, {{256}, {{0, 1}, {4, 5}}}, {{512}, {{2, 3}}}};
  REQUIRE(memory::place_in_arena(ends).size == Bytes{512});
  const std::vector<ArenaSlot> never{{{256}, {}}, {{256}, {{0, 0}}}};
  REQUIRE(memory::place_in_arena(never).offsets == std::vector<Bytes>{{0}, {0}});
}

// By hand, in units of 256 bytes: two pieces of 3 yield to levels of 4 and 5 under a cap of 9. Only with the
// longer piece at the far end, and the levels from the other, is 9 enough.
TEST_CASE("arena: what yields lies at the far end of what it yields to, the longest deepest") {
  const std::vector<ArenaSlot> slots{{{768}, {{0, 1}, {12, 13}}, true},  // leaves first, comes back last
                                     {{768}, {{0, 3}, {10, 13}}, true},  // stays beside the lower level
                                     {{1024}, {{2, 11}}},                // lower level: 4
                                     {{1280}, {{4, 9}}}};                // upper level: 5
  const auto arena = memory::place_in_arena(slots);
  require_valid(slots, arena);
  REQUIRE(arena.max_live == Bytes{2304});
  REQUIRE(arena.size == arena.max_live);
}

TEST_CASE("arena: any placement is valid, and the lower bound is what is live at the busiest time") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 240; ++i) {
    const std::int64_t times = 1 + static_cast<std::int64_t>(random() % 50);
    const auto slots =
        random_slots(random, {.count = 1 + random() % 80, .times = times, .units = 100, .lives = 1 + i % 4});
    const auto arena = memory::place_in_arena(slots);
    require_valid(slots, arena);
    REQUIRE(arena.max_live.value == busiest(slots, times));
    REQUIRE(memory::place_in_arena(slots).offsets == arena.offsets);
  }
}

TEST_CASE("arena: a few hundred slots take little more than the lower bound") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) {
    const auto slots = random_slots(random, {.count = 300, .times = 100, .units = 1000});
    const auto arena = memory::place_in_arena(slots);
    REQUIRE(static_cast<double>(arena.size.value) <= 1.1 * static_cast<double>(arena.max_live.value));
  }
}

TEST_CASE("arena: against the optimum of small cases, of one life each and of two") {
  for (const int lives : {1, 2}) {
    std::mt19937_64 random(2);
    int optimal = 0;
    double worst = 1;
    for (int i = 0; i < 300; ++i) {
      const auto slots = random_slots(random, {.count = 6, .times = 8, .units = 12, .lives = lives});
      const std::int64_t least = optimum(slots);
      const std::int64_t got = memory::place_in_arena(slots).size.value;
      REQUIRE(got >= least);
      optimal += got == least ? 1 : 0;
      worst = std::max(worst, static_cast<double>(got) / static_cast<double>(std::max<std::int64_t>(least, 1)));
    }
    CAPTURE(lives, optimal, worst);
    CHECK(optimal >= 290);
    CHECK(worst < (lives == 1 ? 1.2 : 1.25));
  }
}
