// ContentTracker: the last accesses to every element of one kind of content, as a map of disjoint ranges.
//
// Ops come in plan order. An access must be ordered after the last write of each element it touches, and a write also
// after the reads since then; older accesses follow, because order is transitive.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/op_order.hpp"
#include "models/plan.hpp"

namespace ebb {

class ContentTracker {
 public:
  /// Reports every earlier access to [range) that conflicts with `op` and is not ordered before it, by appending it to
  /// `unordered`; then counts `op` in. An empty range means all elements. O(log cells + cells touched).
  void access(const Order& order, OpId op, ElementRange range, bool write, std::vector<OpId>& unordered);
  /// The same test without counting `op` in, against all elements.
  void test_all(const Order& order, OpId op, bool write, std::vector<OpId>& unordered) const;

 private:
  struct Cell {
    std::int64_t end = 0;
    OpId last_write;
    std::vector<OpId> reads;  // since the last write
  };
  using Cells = std::map<std::int64_t, Cell>;  // by begin

  static void test(const Cell& cell, const Order& order, OpId op, bool write, std::vector<OpId>& unordered);
  static void count(Cell& cell, const Order& order, OpId op, bool write);
  Cells::iterator split(std::int64_t at);

  Cells cells_;
};

}  // namespace ebb
