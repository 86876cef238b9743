// The arena under state that ebbs away for activations and comes back: it must need no more than what is live at the
// busiest time.
#include <algorithm>
#include <random>
#include <vector>

#include "models/memory/arena.hpp"
#include "tests/catch.hpp"
#include "tests/models/memory/tide.hpp"

using namespace ebb;
using memory::ArenaSlot;
using test::Part;
using test::Played;
using test::Random;
using test::Shape;

namespace {

void require_apart(const std::vector<ArenaSlot>& slots, const std::vector<Bytes>& offsets) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (offsets[i] >= offsets[j] + slots[j].bytes || offsets[j] >= offsets[i] + slots[i].bytes) continue;
      for (const memory::ArenaLife& x : slots[i].lives)
        for (const memory::ArenaLife& y : slots[j].lives) REQUIRE((x.last < y.first || y.last < x.first));
    }
  }
}

}  // namespace

TEST_CASE("arena: a tide of equal pieces over levels of any size costs what is live at the busiest time") {
  Random random{std::mt19937_64(8)};
  int came_back = 0;
  for (int i = 0; i < 400; ++i) {
    CAPTURE(i);
    const Played step(test::random_shape(random), Part::step, 0);
    const memory::Arena arena = memory::place_in_arena(step.slots);
    require_apart(step.slots, arena.offsets);
    REQUIRE(arena.max_live.value == 256 * step.most);
    CHECK(arena.size == arena.max_live);
    for (const ArenaSlot& slot : step.slots)
      if (slot.yields && slot.lives.size() > 1) ++came_back;
  }
  CHECK(came_back > 1000);
}

TEST_CASE("arena: a whole life of tides costs it, too: steps, skipped ones, the first one, and saves with a window") {
  Random random{std::mt19937_64(9)};
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    const Shape shape = test::random_shape(random);
    const Played step(shape, Part::step, 0);
    const Played skip(shape, Part::skip, step.end);
    const Played first(shape, Part::first, skip.end);
    std::vector<ArenaSlot> slots = step.slots;
    const auto add_lives = [](ArenaSlot& to, const ArenaSlot& from) {
      to.lives.insert(to.lives.end(), from.lives.begin(), from.lives.end());
    };
    for (std::size_t s = 0; s < slots.size(); ++s) add_lives(slots[s], skip.slots[s]);
    for (std::size_t s = 0; s < first.slots.size(); ++s) {
      if (s < first.shared)
        add_lives(slots[s], first.slots[s]);
      else
        slots.push_back(first.slots[s]);
    }
    // In a save all that outlives a part is there.
    std::int64_t live = 0;
    for (std::size_t s = 0; s < step.shared; ++s) {
      slots[s].lives.push_back({first.end, first.end + 2});
      live += slots[s].bytes.value / 256;
    }
    const std::int64_t window = random.between(0, shape.constant + shape.room - live);
    slots.push_back({{256 * window}, {{first.end + 1, first.end + 1}}});
    const memory::Arena arena = memory::place_in_arena(slots);
    require_apart(slots, arena.offsets);
    REQUIRE(arena.max_live.value == 256 * std::max({step.most, skip.most, first.most, live + window}));
    CHECK(arena.size == arena.max_live);
  }
}

TEST_CASE("arena: a tide beside gradient copies, and one of everything with a smaller piece, cost it") {
  Random random{std::mt19937_64(10)};
  for (int i = 0; i < 400; ++i) {
    CAPTURE(i);
    const Played step(test::uneven_shape(random), Part::step, 0);
    const memory::Arena arena = memory::place_in_arena(step.slots);
    require_apart(step.slots, arena.offsets);
    REQUIRE(arena.max_live.value == 256 * step.most);
    CHECK(arena.size == arena.max_live);
  }
}
