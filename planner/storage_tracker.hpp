// StorageTracker: the lives of one buffer, and the uses of its bytes within the life that is open.
//
// A buffer may live several times (state that leaves and returns keeps its buffer). Within one life its bytes serve
// one element range at a time: copies and kernels of equal range that touch different states are on different bytes;
// of different ranges they are taken to share bytes, as in a slot that is reused.
// Not here: what the bytes mean (content_tracker.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "models/op_order.hpp"
#include "models/plan.hpp"

namespace ebb {

class StorageTracker {
 public:
  explicit StorageTracker(bool initial) : alive_(initial), ever_(initial) {}

  bool alive() const { return alive_; }
  /// It was alive at some time.
  bool ever() const { return ever_; }
  OpId allocated() const { return allocated_; }
  OpId released() const { return released_; }
  /// Which elements the bytes hold now.
  ElementRange range() const { return range_; }

  void allocate(OpId op);
  /// Appends to `unordered` earlier uses of the same bytes that conflict with `op` and are not ordered before it.
  void use(const Order& order, OpId op, const Op& what, bool write, std::vector<OpId>& unordered);
  /// Appends to `late` the uses of this life that may still run when the storage is handed back.
  void release(const Order& order, OpId op, OpId after, std::vector<OpId>& late);

 private:
  struct Use {
    OpId op;
    std::uint8_t states = 0;
    bool write = false;
  };

  bool alive_ = false;
  bool ever_ = false;
  OpId allocated_;
  OpId released_;
  ElementRange range_;          // which elements the bytes hold now
  std::vector<Use> uses_;       // of these elements; older ones that follow by transitivity are dropped
  std::vector<Use> displaced_;  // of the elements before: every use of the present ones comes after all of these
};

}  // namespace ebb
