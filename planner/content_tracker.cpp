#include "planner/content_tracker.hpp"

#include <algorithm>
#include <limits>

namespace ebb {

void ContentTracker::test(const Cell& cell, const Order& order, OpId op, bool write, std::vector<OpId>& unordered) {
  if (cell.last_write.valid() && !order.before(cell.last_write, op)) unordered.push_back(cell.last_write);
  if (!write) return;
  for (const OpId read : cell.reads) {
    if (!order.before(read, op)) unordered.push_back(read);
  }
}

/// The first cell that begins at or after `at`; a cell that spans `at` is cut in two.
ContentTracker::Cells::iterator ContentTracker::split(std::int64_t at) {
  const auto next = cells_.lower_bound(at);
  if (next == cells_.begin()) return next;
  const auto spanning = std::prev(next);
  if (spanning->second.end <= at) return next;
  Cell right = spanning->second;
  spanning->second.end = at;
  return cells_.emplace_hint(next, at, std::move(right));
}

void ContentTracker::access(const Order& order, OpId op, ElementRange range, bool write, std::vector<OpId>& unordered) {
  if (range.begin >= range.end) {
    range = {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  }
  split(range.begin);
  const auto end = split(range.end);
  auto cell = cells_.lower_bound(range.begin);
  if (write) {
    for (auto it = cell; it != end; ++it) test(it->second, order, op, true, unordered);
    cells_.erase(cell, end);
    cells_[range.begin] = {range.end, op, {}};
    return;
  }
  std::int64_t at = range.begin;
  for (; cell != end; ++cell) {
    if (cell->first > at) cells_.emplace_hint(cell, at, Cell{cell->first, OpId::none(), {op}});
    test(cell->second, order, op, false, unordered);
    std::erase_if(cell->second.reads, [&](OpId read) { return order.before(read, op); });
    cell->second.reads.push_back(op);
    at = cell->second.end;
  }
  if (at < range.end) cells_.emplace_hint(end, at, Cell{range.end, OpId::none(), {op}});
}

void ContentTracker::test_all(const Order& order, OpId op, bool write, std::vector<OpId>& unordered) const {
  for (const auto& [begin, cell] : cells_) test(cell, order, op, write, unordered);
}

}  // namespace ebb
