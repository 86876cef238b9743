// Slots of an arena under a tide, made by playing a step under a cap: pieces of one size that leave nearest first while
// levels of a stack rise, arrive farthest first while they fall, and then move through places in laps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "models/memory/arena.hpp"
#include "tests/catch.hpp"

namespace ebb::test {

struct Shape {
  std::int64_t piece = 0;  // units of 256 bytes
  std::vector<std::int64_t> levels;
  std::int64_t constant = 0;       // parameters, gradients
  std::int64_t copies = 0;         // of gradients: from finalize to the beginning of the next step
  std::int64_t norm = 0;           // in finalize
  std::int64_t room = 0;           // the cap without constants
  std::int64_t micro_batches = 1;  // rounds of the levels' rise and fall
  std::int64_t kept = 0;           // pieces that never leave
  std::int64_t tails = 0;          // there when the step begins
  std::int64_t nearest = 0;        // the size of the tail that leaves first
  bool whole = false;              // everything is tail: pieces come back into their own buffers
  std::int64_t prefetched = 0;     // at most
  std::vector<std::int64_t> laps;  // widths, of places in the optimizer step; the last one: the tails
};

/// A step, one whose gradients are not finite, or the first one, before which no state is on the device.
enum class Part { step, skip, first };

/// Plays a part; time goes on by one with each event. Slots of equal parts come in the same order.
class Played {
 public:
  Played(const Shape& shape, Part part, std::int64_t begin) : shape_(shape), part_(part), now_(begin) {
    const bool early = part != Part::first;
    start(add(shape_.constant, false), true);
    copies_ = add(shape_.copies, false);
    start(copies_, early);
    for (std::int64_t k = 0; k < shape_.kept; ++k) start(kept_.emplace_back(add(shape_.piece, true)), early);
    for (std::int64_t i = 0; i < shape_.tails; ++i) {
      start(tails_.emplace_back(add(i == 0 ? shape_.nearest : shape_.piece, true)), early);
    }
    shared = slots.size();
    norm_ = add(shape_.norm, false);
    for (const std::int64_t bytes : shape_.levels) levels_.push_back(add(bytes, false));
    const std::int64_t widest = *std::max_element(shape_.laps.begin(), shape_.laps.end());
    places_.resize(static_cast<std::size_t>(std::max(widest, shape_.prefetched)));
    for (Place& place : places_) place.slot = add(shape_.piece, true);
    play();
    for (std::size_t s = 0; s < slots.size(); ++s)
      if (open_[s]) slots[s].lives.push_back({begun_[s], now_});
    end = now_ + 1;
  }
  std::vector<memory::ArenaSlot> slots;
  std::size_t shared = 0;  // so many of them outlive parts
  std::int64_t most = 0;   // units
  std::int64_t end = 0;    // when the next part may begin

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
  void start(std::size_t slot, bool there) {
    if (!there) return;
    open(slot);
    begun_[slot] = --now_;
  }
  void open(std::size_t slot) {
    REQUIRE(!open_[slot]);
    begun_[slot] = ++now_;
    open_[slot] = true;
    live_ += units(slot);
    most = std::max(most, live_);
  }
  void close(std::size_t slot) {
    REQUIRE(open_[slot]);
    slots[slot].lives.push_back({begun_[slot], ++now_});
    open_[slot] = false;
    live_ -= units(slot);
  }
  std::int64_t units(std::size_t slot) const { return slots[slot].bytes.value / 256; }
  bool fits(std::int64_t bytes) const { return live_ + bytes <= shape_.constant + shape_.room; }

  void play() {
    if (part_ == Part::first) gone_ = tails_.size();
    if (open_[copies_]) close(copies_);
    for (std::int64_t m = 0; m < shape_.micro_batches; ++m) {
      rise();
      fall(m + 1 == shape_.micro_batches);
    }
    open(copies_);
    open(norm_);
    close(norm_);
    if (part_ == Part::skip) return skip();
    if (part_ == Part::first)
      for (const std::size_t kept : kept_) open(kept);
    laps();
  }
  void skip() {
    for (std::int64_t place = 0; place < arrived_; ++place) close(places_[static_cast<std::size_t>(place)].slot);
    for (const std::size_t tail : tails_)
      if (!open_[tail]) open(tail);
  }

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
    // What else comes before a place is free again.
    const std::int64_t kept = part_ == Part::first ? shape_.kept * shape_.piece : 0;
    const std::int64_t finalize = shape_.copies + std::max(shape_.norm, kept);
    for (std::size_t l = levels_.size(); l-- > 0;) {
      close(levels_[l]);
      if (!last) continue;
      while (gone_ < tails_.size()) close(tails_[gone_++]);
      while (arrived_ < shape_.prefetched && fits(shape_.piece + finalize)) arrive();
    }
  }
  void arrive() {
    const auto place = static_cast<std::size_t>(arrived_++);
    if (shape_.whole)
      open(tails_[tails_.size() - 1 - place]);
    else
      take(place);
  }
  void take(std::size_t place) {
    if (std::exchange(places_[place].taken, true)) return;
    open(places_[place].slot);
  }

  /// The places that pieces go through, in the order in which they are stepped; a piece comes into its place as soon as
  /// what the place held has been stepped and there is room. The last lap is into the tails' own buffers.
  void laps() {
    if (shape_.whole) {
      while (arrived_ < shape_.tails) arrive();
      return;
    }
    std::vector<std::size_t> visits;
    for (std::int64_t place = arrived_; place-- > 0;) visits.push_back(static_cast<std::size_t>(place));
    std::size_t next = visits.size();  // to come in
    for (const std::int64_t width : shape_.laps)
      for (std::int64_t place = width; place-- > 0;) visits.push_back(static_cast<std::size_t>(place));
    const std::size_t last_lap = visits.size() - static_cast<std::size_t>(shape_.laps.back());
    const auto bring_in = [&](std::size_t stepped) {
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
    for (const Place& place : places_)
      if (place.taken) close(place.slot);
  }

  Shape shape_;
  Part part_;
  std::vector<bool> open_;
  std::vector<std::int64_t> begun_;
  std::int64_t now_;
  std::int64_t live_ = 0;
  std::size_t copies_ = 0, norm_ = 0;
  std::vector<std::size_t> levels_, kept_, tails_;
  std::vector<Place> places_;
  std::size_t gone_ = 0;
  std::int64_t arrived_ = 0;
};

struct Random {
  std::mt19937_64 engine;
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(high - low + 1));
  }
};

inline Shape random_shape(Random& random) {
  Shape shape;
  shape.piece = random.between(50, 3000);
  std::int64_t peak = 0;
  for (int l = 0; l < 24; ++l) peak += shape.levels.emplace_back(random.between(1, 2000));
  shape.constant = random.between(1, 50'000);
  shape.kept = random.between(0, 3);
  const std::int64_t stays = shape.kept * shape.piece;
  shape.room = stays + std::max(peak + random.between(0, shape.piece - 1), random.between(1, 12) * shape.piece);
  const std::int64_t places = (shape.room - stays) / shape.piece;
  shape.tails = random.between(1, places);
  shape.nearest = shape.piece;
  shape.prefetched = random.between(0, places);
  shape.micro_batches = random.between(1, 3);
  for (std::int64_t l = random.between(0, 3); l > 0; --l) shape.laps.push_back(random.between(1, places));
  shape.laps.push_back(shape.tails);
  return shape;
}

/// With copies of gradients and a norm, which leave fewer places; sometimes everything is tail, and the piece that is
/// left over from dividing by the pieces' size is the nearest one. (A smaller piece farther out would not do: between
/// it and the levels pieces of the full size need their places.)
inline Shape uneven_shape(Random& random) {
  Shape shape = random_shape(random);
  const std::int64_t stays = shape.kept * shape.piece;
  shape.copies = random.between(0, std::max<std::int64_t>(0, shape.room - stays - shape.piece) / 2);
  shape.norm = random.between(0, 2);
  const std::int64_t places = (shape.room - stays - shape.copies) / shape.piece;
  for (std::int64_t& width : shape.laps) width = std::min(width, places);
  shape.tails = std::min(shape.tails, places);
  shape.laps.back() = shape.tails;
  shape.prefetched = std::min(shape.prefetched, places);
  shape.whole = random.between(0, 2) == 0;
  if (!shape.whole) return shape;
  shape.nearest = random.between(1, shape.piece);
  shape.prefetched = std::min(shape.prefetched, shape.tails);
  return shape;
}

}  // namespace ebb::test
