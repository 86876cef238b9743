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

void require_valid(const std::vector<ArenaSlot>& slots, const memory::Arena& arena) {
  REQUIRE(arena.offsets.size() == slots.size());
  REQUIRE(arena.size >= arena.max_live);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    REQUIRE(arena.offsets[i].value % memory::kArenaAlignment.value == 0);
    REQUIRE(arena.offsets[i] >= Bytes{0});
    REQUIRE(arena.offsets[i] + slots[i].bytes <= arena.size);
    for (std::size_t j = 0; j < i; ++j) {
      const bool in_time = slots[i].first_use <= slots[j].last_use && slots[j].first_use <= slots[i].last_use;
      const bool in_space =
          arena.offsets[i] < arena.offsets[j] + slots[j].bytes && arena.offsets[j] < arena.offsets[i] + slots[i].bytes;
      REQUIRE_FALSE((in_time && in_space));
    }
  }
}

std::vector<ArenaSlot> random_slots(std::mt19937_64& random, std::size_t n, std::int64_t times, std::int64_t units) {
  std::vector<ArenaSlot> slots(n);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  for (ArenaSlot& slot : slots) {
    slot.bytes = {below(units * 256)};
    slot.first_use = below(times);
    slot.last_use = slot.first_use + below(times - slot.first_use);
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
          if (at[j] < 0 || slots[i].first_use > slots[j].last_use || slots[j].first_use > slots[i].last_use) continue;
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
  const std::vector<ArenaSlot> slots{{{1000}, 0, 1}, {{500}, 2, 3}, {{300}, 1, 2}, {{0}, 0, 9}};
  const auto arena = memory::place_in_arena(slots);
  require_valid(slots, arena);
  REQUIRE(arena.max_live == Bytes{1024 + 512});
  REQUIRE(arena.size == arena.max_live);
  REQUIRE(memory::place_in_arena({}).size == Bytes{0});
}

TEST_CASE("arena: any placement is valid, and the lower bound is what is live at the busiest time") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 60; ++i) {
    const auto slots = random_slots(random, 1 + random() % 80, 1 + static_cast<std::int64_t>(random() % 50), 100);
    const auto arena = memory::place_in_arena(slots);
    require_valid(slots, arena);
    std::int64_t busiest = 0;
    for (std::int64_t t = 0; t < 50; ++t) {
      std::int64_t live = 0;
      for (const ArenaSlot& slot : slots) {
        if (slot.first_use <= t && t <= slot.last_use) live += round_up(slot.bytes.value, 256);
      }
      busiest = std::max(busiest, live);
    }
    REQUIRE(arena.max_live.value == busiest);
    REQUIRE(memory::place_in_arena(slots).offsets == arena.offsets);
  }
}

TEST_CASE("arena: a few hundred slots take little more than the lower bound") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) {
    const auto slots = random_slots(random, 300, 100, 1000);
    const auto arena = memory::place_in_arena(slots);
    REQUIRE(static_cast<double>(arena.size.value) <= 1.1 * static_cast<double>(arena.max_live.value));
  }
}

TEST_CASE("arena: against the optimum of small cases") {
  std::mt19937_64 random(2);
  int optimal = 0;
  double worst = 1;
  for (int i = 0; i < 300; ++i) {
    const auto slots = random_slots(random, 6, 8, 12);
    const std::int64_t least = optimum(slots);
    const std::int64_t got = memory::place_in_arena(slots).size.value;
    REQUIRE(got >= least);
    optimal += got == least ? 1 : 0;
    worst = std::max(worst, static_cast<double>(got) / static_cast<double>(std::max<std::int64_t>(least, 1)));
  }
  CAPTURE(optimal, worst);
  REQUIRE(optimal >= 290);
  REQUIRE(worst < 1.2);
}
