// The arena under state that ebbs away for activations and comes back: pieces of one size that leave nearest first
// while levels of a stack rise, arrive farthest first while they fall, and then move through places in laps. Lives are
// made here by playing such a step under a cap; the arena must need no more than what is live at the busiest time.
#include <algorithm>
#include <random>
#include <vector>

#include "models/memory/arena.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using memory::ArenaSlot;

namespace {

struct Shape {
  std::int64_t piece = 0;  // units of 256 bytes
  std::vector<std::int64_t> levels;
  std::int64_t constant = 0;       // parameters, gradients
  std::int64_t room = 0;           // the cap without them
  std::int64_t micro_batches = 1;  // rounds of the levels' rise and fall
  std::int64_t kept = 0;           // pieces that never leave
  std::int64_t tails = 0;          // there when the step begins
  std::int64_t prefetched = 0;     // at most
  std::vector<std::int64_t> laps;  // widths, of places in the optimizer step; the last one: the tails
};

/// Plays the step; time goes on by one with each event.
class Step {
 public:
  explicit Step(const Shape& shape) : shape_(shape) {
    begin(shape_.constant, false);
    for (std::int64_t k = 0; k < shape_.kept; ++k) begin(shape_.piece, true);
    for (std::int64_t i = 0; i < shape_.tails; ++i) tails_.push_back(begin(shape_.piece, true));
    for (const std::int64_t bytes : shape_.levels) levels_.push_back(add(bytes, false));
    const std::int64_t widest = *std::max_element(shape_.laps.begin(), shape_.laps.end());
    places_.resize(static_cast<std::size_t>(std::max(widest, shape_.prefetched)));
    for (Place& place : places_) place.slot = add(shape_.piece, true);
    for (std::int64_t m = 0; m < shape_.micro_batches; ++m) {
      rise();
      fall(m + 1 == shape_.micro_batches);
    }
    laps();
    for (std::size_t s = 0; s < slots.size(); ++s)
      if (open_[s]) slots[s].lives.push_back({begun_[s], now_});
  }
  std::vector<ArenaSlot> slots;
  std::int64_t most = 0;  // units

 private:
  struct Place {
    std::size_t slot = 0;
    bool taken = false;
  };

  std::size_t add(std::int64_t units, bool yields) {
    slots.push_back({{256 * units}, {}, yields});
    open_.push_back(false);
    begun_.push_back(0);
    return slots.size() - 1;
  }
  std::size_t begin(std::int64_t units, bool yields) {
    const std::size_t slot = add(units, yields);
    open(slot);
    now_ = 0;
    begun_[slot] = 0;
    return slot;
  }
  void open(std::size_t slot) {
    begun_[slot] = ++now_;
    open_[slot] = true;
    live_ += units(slot);
    most = std::max(most, live_);
  }
  void close(std::size_t slot) {
    slots[slot].lives.push_back({begun_[slot], ++now_});
    open_[slot] = false;
    live_ -= units(slot);
  }
  std::int64_t units(std::size_t slot) const { return slots[slot].bytes.value / 256; }
  bool fits(std::int64_t bytes) const { return live_ + bytes <= shape_.constant + shape_.room; }

  /// The nearest tail leaves first, and as late as may be.
  void rise() {
    for (const std::size_t level : levels_) {
      while (!fits(units(level))) {
        REQUIRE(gone_ < tails_.size());
        close(tails_[gone_++]);
      }
      open(level);
    }
  }
  /// What has not left yet must have before it is stepped again; then pieces come in, farthest first.
  void fall(bool last) {
    for (std::size_t l = levels_.size(); l-- > 0;) {
      close(levels_[l]);
      if (!last) continue;
      while (gone_ < tails_.size()) close(tails_[gone_++]);
      while (arrived_ < shape_.prefetched && fits(shape_.piece)) take(static_cast<std::size_t>(arrived_++));
    }
  }
  void take(std::size_t place) {
    if (std::exchange(places_[place].taken, true)) return;
    open(places_[place].slot);
  }

  /// The places that pieces go through, in the order in which they are stepped; a piece comes into its place as soon as
  /// that is free, at most one lap ahead of Adam. The last lap is into the tails' own buffers.
  void laps() {
    std::vector<std::size_t> visits;
    for (std::int64_t place = arrived_; place-- > 0;) visits.push_back(static_cast<std::size_t>(place));
    const std::size_t ahead = visits.size();
    for (const std::int64_t width : shape_.laps)
      for (std::int64_t place = width; place-- > 0;) visits.push_back(static_cast<std::size_t>(place));
    const std::size_t last_lap = visits.size() - static_cast<std::size_t>(shape_.laps.back());
    std::size_t next = ahead;  // to come in
    const auto bring_in = [&](std::size_t stepped) {
      // FIFO: what a place holds must have been stepped.
      for (; next < visits.size(); ++next) {
        const std::size_t place = visits[next];
        const auto before = std::find(visits.rend() - static_cast<std::ptrdiff_t>(next), visits.rend(), place);
        const auto holds = static_cast<std::size_t>(visits.rend() - before);  // behind its visit; 0: none
        if (holds > stepped) return;
        if (next >= last_lap) {
          if (std::exchange(places_[place].taken, false)) close(places_[place].slot);
          if (!fits(shape_.piece)) return;
          open(tails_[tails_.size() - 1 - place]);
        } else {
          if (!places_[place].taken && !fits(shape_.piece)) return;
          take(place);
        }
      }
    };
    for (std::size_t k = 0; k <= visits.size(); ++k) {
      bring_in(k);
      ++now_;
    }
    REQUIRE(next == visits.size());
    for (Place& place : places_)
      if (place.taken) close(place.slot);
  }

  Shape shape_;
  std::vector<bool> open_;
  std::vector<std::int64_t> begun_;
  std::int64_t now_ = 0;
  std::int64_t live_ = 0;
  std::vector<std::size_t> levels_, tails_;
  std::vector<Place> places_;
  std::size_t gone_ = 0;
  std::int64_t arrived_ = 0;
};

Shape random_shape(std::mt19937_64& random) {
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  Shape shape;
  shape.piece = between(50, 3000);
  std::int64_t peak = 0;
  for (int l = 0; l < 24; ++l) peak += shape.levels.emplace_back(between(1, 2000));
  shape.constant = between(1, 50'000);
  shape.kept = between(0, 3);
  const std::int64_t stays = shape.kept * shape.piece;
  shape.room = stays + std::max(peak + between(0, shape.piece - 1), between(1, 12) * shape.piece);
  const std::int64_t places = (shape.room - stays) / shape.piece;
  shape.tails = between(1, places);
  shape.prefetched = between(0, places);
  shape.micro_batches = between(1, 3);
  for (std::int64_t l = between(0, 3); l > 0; --l) shape.laps.push_back(between(1, places));
  shape.laps.push_back(shape.tails);
  return shape;
}

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
  std::mt19937_64 random(8);
  int came_back = 0;
  for (int i = 0; i < 400; ++i) {
    CAPTURE(i);
    const Step step(random_shape(random));
    const memory::Arena arena = memory::place_in_arena(step.slots);
    require_apart(step.slots, arena.offsets);
    REQUIRE(arena.max_live.value == 256 * step.most);
    CHECK(arena.size == arena.max_live);
    for (const ArenaSlot& slot : step.slots)
      if (slot.yields && slot.lives.size() > 1) ++came_back;
  }
  CHECK(came_back > 1000);
}
