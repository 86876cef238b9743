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

void ContentTracker::count(Cell& cell, const Order& order, OpId op, bool write) {
  if (write) {
    cell.last_write = op;
    return cell.reads.clear();
  }
  std::erase_if(cell.reads, [&](OpId read) { return order.before(read, op); });
  cell.reads.push_back(op);
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
  // Mostly the elements are those of an earlier access.
  auto cell = cells_.lower_bound(range.begin);
  if (cell != cells_.end() && cell->first == range.begin && cell->second.end == range.end) {
    test(cell->second, order, op, write, unordered);
    return count(cell->second, order, op, write);
  }
  split(range.begin);
  const auto end = split(range.end);
  cell = cells_.lower_bound(range.begin);
  if (write) {
    for (auto it = cell; it != end; ++it) test(it->second, order, op, true, unordered);
    cells_.emplace_hint(cells_.erase(cell, end), range.begin, Cell{range.end, op, {}});
    return;
  }
  std::int64_t at = range.begin;
  for (; cell != end; ++cell) {
    if (cell->first > at) cells_.emplace_hint(cell, at, Cell{cell->first, OpId::none(), {op}});
    test(cell->second, order, op, false, unordered);
    count(cell->second, order, op, false);
    at = cell->second.end;
  }
  if (at < range.end) cells_.emplace_hint(end, at, Cell{range.end, OpId::none(), {op}});
}

void ContentTracker::test_all(const Order& order, OpId op, bool write, std::vector<OpId>& unordered) const {
  for (const auto& [begin, cell] : cells_) test(cell, order, op, write, unordered);
}

}  // namespace ebb
