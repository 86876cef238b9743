#include "models/memory/arena.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "models/errors.hpp"

namespace ebb::memory {

namespace {

std::int64_t aligned(const ArenaSlot& slot) { return round_up(slot.bytes.value, kArenaAlignment.value); }

bool together(const ArenaSlot& a, const ArenaSlot& b) { return a.first_use <= b.last_use && b.first_use <= a.last_use; }

Bytes max_live(std::span<const ArenaSlot> slots) {
  std::vector<std::tuple<std::int64_t, bool, std::int64_t>> changes;  // time, ends (after all that begin then), bytes
  changes.reserve(2 * slots.size());
  for (const ArenaSlot& slot : slots) {
    changes.emplace_back(slot.first_use, false, aligned(slot));
    changes.emplace_back(slot.last_use, true, -aligned(slot));
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const auto& change : changes) {
    live += std::get<2>(change);
    most = std::max(most, live);
  }
  return {most};
}

/// Where `bytes` fit between the `taken` (begin, end) pieces, sorted by begin: the smallest gap, the lowest of equal
/// ones; else behind them all.
std::int64_t best_gap(std::span<const std::pair<std::int64_t, std::int64_t>> taken, std::int64_t bytes) {
  std::int64_t best = -1;
  std::int64_t best_gap = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
  for (const auto& [begin, piece_end] : taken) {
    if (begin - end >= bytes && begin - end < best_gap) {
      best = end;
      best_gap = begin - end;
    }
    end = std::max(end, piece_end);
  }
  return best >= 0 ? best : end;
}

/// Places the slots in `order` one after another.
Arena place(std::span<const ArenaSlot> slots, std::span<const std::size_t> order) {
  Arena arena;
  arena.offsets.resize(slots.size());
  std::vector<std::size_t> placed;  // by offset
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (const std::size_t i : order) {
    const std::int64_t bytes = aligned(slots[i]);
    if (bytes == 0) continue;
    taken.clear();
    for (const std::size_t j : placed) {
      const std::int64_t begin = arena.offsets[j].value;
      if (together(slots[i], slots[j])) taken.emplace_back(begin, begin + aligned(slots[j]));
    }
    const std::int64_t offset = best_gap(taken, bytes);
    arena.offsets[i] = {offset};
    arena.size = std::max(arena.size, Bytes{offset + bytes});
    const auto before = [&arena](std::int64_t at, std::size_t j) { return at < arena.offsets[j].value; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset, before), i);
  }
  return arena;
}

}  // namespace

Arena place_in_arena(std::span<const ArenaSlot> slots) {
  for (const ArenaSlot& slot : slots) EBB_ASSERT(slot.bytes.value >= 0 && slot.first_use <= slot.last_use);
  const Bytes bound = max_live(slots);
  std::vector<std::size_t> order(slots.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto length = [&](std::size_t i) { return slots[i].last_use - slots[i].first_use; };

  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return aligned(slots[a]) > aligned(slots[b]); });
  Arena best = place(slots, order);
  const auto try_order = [&](auto less) {
    if (best.size == bound) return;
    std::stable_sort(order.begin(), order.end(), less);  // ties: the larger first, as left by the order before
    Arena arena = place(slots, order);
    if (arena.size < best.size) best = std::move(arena);
  };
  try_order([&](std::size_t a, std::size_t b) { return length(a) > length(b); });
  try_order([&](std::size_t a, std::size_t b) { return slots[a].first_use < slots[b].first_use; });
  try_order([&](std::size_t a, std::size_t b) { return slots[a].last_use > slots[b].last_use; });
  best.max_live = bound;
  return best;
}

}  // namespace ebb::memory
