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

bool together(const ArenaSlot& a, const ArenaSlot& b) {
  auto x = a.lives.begin();
  auto y = b.lives.begin();
  while (x != a.lives.end() && y != b.lives.end()) {
    if (x->first <= y->last && y->first <= x->last) return true;
    (x->last < y->last ? ++x : ++y);
  }
  return false;
}

/// Live bytes as steps: from a time on, up to the next one.
using Steps = std::vector<std::pair<std::int64_t, std::int64_t>>;

template <class Which>
Steps live_bytes(std::span<const ArenaSlot> slots, Which which) {
  Steps changes;
  for (const ArenaSlot& slot : slots) {
    if (!which(slot)) continue;
    for (const ArenaLife& life : slot.lives) {
      changes.emplace_back(life.first, aligned(slot));
      changes.emplace_back(life.last + 1, -aligned(slot));
    }
  }
  std::sort(changes.begin(), changes.end());
  Steps steps;
  std::int64_t live = 0;
  for (const auto& [time, bytes] : changes) {
    live += bytes;
    if (!steps.empty() && steps.back().first == time)
      steps.back().second = live;
    else
      steps.emplace_back(time, live);
  }
  return steps;
}

Bytes max_live(std::span<const ArenaSlot> slots) {
  std::int64_t most = 0;
  for (const auto& step : live_bytes(slots, [](const ArenaSlot&) { return true; })) most = std::max(most, step.second);
  return {most};
}

/// The most that the steps hold during one of the slot's lives.
std::int64_t most_beside(const ArenaSlot& slot, const Steps& steps) {
  std::int64_t most = 0;
  for (const ArenaLife& life : slot.lives) {
    const auto behind = [](std::int64_t time, const auto& step) { return time < step.first; };
    auto step = std::upper_bound(steps.begin(), steps.end(), life.first, behind);
    if (step != steps.begin()) --step;  // holds when the life begins
    for (; step != steps.end() && step->first <= life.last; ++step) most = std::max(most, step->second);
  }
  return most;
}

enum class Gap { smallest, lowest };

/// Where `bytes` fit between the `taken` (begin, end) pieces, sorted by begin: in the smallest gap, the lowest of equal
/// ones, or in the lowest; else behind them all.
std::int64_t find_gap(std::span<const std::pair<std::int64_t, std::int64_t>> taken, std::int64_t bytes, Gap which) {
  std::int64_t best = -1;
  std::int64_t best_gap = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
  for (const auto& [begin, piece_end] : taken) {
    if (begin - end >= bytes && begin - end < best_gap) {
      best = end;
      best_gap = begin - end;
      if (which == Gap::lowest) return best;
    }
    end = std::max(end, piece_end);
  }
  return best >= 0 ? best : end;
}

using Order = std::vector<std::size_t>;

/// Places the slots in `order` one after another.
Arena place(std::span<const ArenaSlot> slots, const Order& order, Gap which) {
  Arena arena;
  arena.offsets.resize(slots.size());
  std::vector<std::size_t> placed;  // by offset
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (const std::size_t i : order) {
    const std::int64_t bytes = aligned(slots[i]);
    if (bytes == 0 || slots[i].lives.empty()) continue;
    taken.clear();
    for (const std::size_t j : placed) {
      const std::int64_t begin = arena.offsets[j].value;
      if (together(slots[i], slots[j])) taken.emplace_back(begin, begin + aligned(slots[j]));
    }
    const std::int64_t offset = find_gap(taken, bytes, which);
    arena.offsets[i] = {offset};
    arena.size = std::max(arena.size, Bytes{offset + bytes});
    const auto before = [&arena](std::int64_t at, std::size_t j) { return at < arena.offsets[j].value; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset, before), i);
  }
  return arena;
}

std::int64_t length(const ArenaSlot& slot) {
  std::int64_t sum = 0;
  for (const ArenaLife& life : slot.lives) sum += life.last - life.first + 1;
  return sum;
}

/// Slots that yield by how deep the others were beside them, of equal ones the later to end its first life first; then
/// the others, the shortest first (the top of a stack).
Order by_depth(std::span<const ArenaSlot> slots) {
  const Steps others = live_bytes(slots, [](const ArenaSlot& slot) { return !slot.yields; });
  std::vector<std::tuple<bool, std::int64_t, std::int64_t, std::size_t>> keys;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const ArenaSlot& slot = slots[i];
    if (slot.lives.empty()) continue;
    if (slot.yields)
      keys.emplace_back(false, -most_beside(slot, others), -slot.lives.front().last, i);
    else
      keys.emplace_back(true, length(slot), -slot.lives.front().first, i);
  }
  std::sort(keys.begin(), keys.end());
  Order order;
  for (const auto& key : keys) order.push_back(std::get<3>(key));
  return order;
}

bool well_formed(const ArenaSlot& slot) {
  for (std::size_t l = 0; l < slot.lives.size(); ++l) {
    if (slot.lives[l].first > slot.lives[l].last) return false;
    if (l > 0 && slot.lives[l].first <= slot.lives[l - 1].last) return false;
  }
  return slot.bytes.value >= 0;
}

}  // namespace

Arena place_in_arena(std::span<const ArenaSlot> slots) {
  EBB_ASSERT(std::all_of(slots.begin(), slots.end(), well_formed));
  const Bytes bound = max_live(slots);
  Order order;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!slots[i].lives.empty()) order.push_back(i);

  const auto by = [&](auto key) {  // ties: as left by the order before
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key(slots[a]) < key(slots[b]); });
  };
  by([](const ArenaSlot& slot) { return -aligned(slot); });
  Arena best = place(slots, order, Gap::smallest);
  const auto try_order = [&](const Order& next, Gap which) {
    Arena arena = place(slots, next, which);
    if (arena.size < best.size) best = std::move(arena);
  };
  const auto try_by = [&](auto key) {
    if (best.size == bound) return;
    by(key);
    try_order(order, Gap::smallest);
  };
  try_by([](const ArenaSlot& slot) { return -length(slot); });
  try_by([](const ArenaSlot& slot) { return slot.lives.front().first; });
  try_by([](const ArenaSlot& slot) { return -slot.lives.back().last; });
  if (best.size != bound) try_order(by_depth(slots), Gap::lowest);
  best.max_live = bound;
  return best;
}

}  // namespace ebb::memory
