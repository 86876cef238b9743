#include "planner/storage_tracker.hpp"

#include <utility>

namespace ebb {

void StorageTracker::allocate(OpId op) {
  alive_ = ever_ = true;
  allocated_ = op;
  range_ = {};
  uses_.clear();
  displaced_.clear();
}

void StorageTracker::use(const Order& order, OpId op, const Op& what, bool write, std::vector<OpId>& unordered) {
  const Use now{op, what.states == 0 ? std::uint8_t{0xff} : what.states, write};
  if (what.range.begin != range_.begin || what.range.end != range_.end) {
    if (!uses_.empty()) displaced_ = std::exchange(uses_, {});
    range_ = what.range;
  }
  for (const Use& old : displaced_) {
    if (!order.before(old.op, op)) unordered.push_back(old.op);
  }
  for (const Use& old : uses_) {
    if ((old.write || write) && (old.states & now.states) && !order.before(old.op, op)) unordered.push_back(old.op);
  }
  std::erase_if(uses_,
                [&](const Use& old) { return write && (old.states & ~now.states) == 0 && order.before(old.op, op); });
  uses_.push_back(now);
}

void StorageTracker::release(const Order& order, OpId op, OpId after, std::vector<OpId>& late) {
  for (const auto* uses : {&displaced_, &uses_}) {
    for (const Use& use : *uses) {
      const bool by_release = order.before(use.op, op);
      const bool by_after = after.valid() && (use.op == after || order.before(use.op, after));
      if (!by_release && !by_after) late.push_back(use.op);
    }
  }
  alive_ = false;
  released_ = op;
}

}  // namespace ebb
