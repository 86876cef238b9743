// TraceBuilder: writes one part of an AllocationTrace after the other and hands out tensor numbers. It keeps a clock
// for copies that outlast the tensor they read (record_stream). Internal to allocation_trace*.cpp.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "models/errors.hpp"
#include "planner/allocation_trace.hpp"

namespace ebb {

/// A tensor number; none: nothing lives there.
struct TraceTensor {
  static constexpr std::uint32_t kNone = 0xffffffffU;
  std::uint32_t index = kNone;
  bool valid() const { return index != kNone; }
};

class TraceBuilder {
 public:
  /// `marked`: the parts say which phase an event belongs to, and when it is.
  explicit TraceBuilder(bool marked = false) : marked_(marked) {}

  /// What follows goes into `part`. Precondition: every tensor that is not kept has been released.
  void start(TracePart& part) {
    EBB_ASSERT(unused_.size() == temporaries_);
    part_ = &part.events;
    whole_ = &part;
  }

  /// What follows belongs to `phase` of the step.
  void mark(Phase phase) {
    if (marked_) whole_->marks.push_back({phase, static_cast<std::uint32_t>(part_->size())});
  }

  /// What tensors from here on are for, until the next call.
  void term(MemoryTerm term) { term_ = term; }

  /// A tensor that dies in the part it is born in. Its number is used again. 0 bytes: none.
  TraceTensor allocate(Bytes bytes) {
    if (bytes.value <= 0) return {};
    if (unused_.empty()) {
      unused_.push_back(count_++);
      ++temporaries_;
    }
    const TraceTensor tensor{unused_.back()};
    unused_.pop_back();
    part_->push_back({AllocationEvent::Kind::allocate, term_, tensor.index, bytes});
    return tensor;
  }
  void release(TraceTensor tensor) {
    if (!tensor.valid()) return;
    part_->push_back({AllocationEvent::Kind::release, {}, tensor.index, {}});
    unused_.push_back(tensor.index);
  }
  /// Memory that is allocated and freed at once.
  void pass(Bytes bytes) { release(allocate(bytes)); }

  /// A tensor that may outlive its part: the number is its own. 0 bytes: nothing happens.
  TraceTensor keep() { return {count_++}; }
  void allocate(TraceTensor kept, Bytes bytes) {
    if (bytes.value > 0) part_->push_back({AllocationEvent::Kind::allocate, term_, kept.index, bytes});
  }
  void release_kept(TraceTensor kept) { part_->push_back({AllocationEvent::Kind::release, {}, kept.index, {}}); }
  /// ... while a copy reads it that ends at `end`, seconds on this clock. Copies end in the order of these calls.
  void leave(TraceTensor kept, Seconds end) {
    part_->push_back({AllocationEvent::Kind::leave, {}, kept.index, {}});
    leaving_.emplace_back(end, kept);
  }

  void reset_clock() { now_ = Seconds{0}; }
  void advance(Seconds duration) {
    now_ += duration;
    if (marked_) whole_->clock.push_back({static_cast<std::uint32_t>(part_->size()), now_});
    while (!leaving_.empty() && leaving_.front().first <= now_) end_first();
  }
  void wait_for_copies() {
    while (!leaving_.empty()) end_first();
  }

  std::uint32_t tensors() const { return count_; }
  /// Events so far in this part.
  std::size_t position() const { return part_->size(); }

 private:
  void end_first() {
    part_->push_back({AllocationEvent::Kind::end, {}, leaving_.front().second.index, {}});
    leaving_.pop_front();
  }

  bool marked_;
  std::vector<AllocationEvent>* part_ = nullptr;
  TracePart* whole_ = nullptr;
  std::vector<std::uint32_t> unused_;
  std::size_t temporaries_ = 0;
  std::uint32_t count_ = 0;
  std::deque<std::pair<Seconds, TraceTensor>> leaving_;
  Seconds now_{0};
  MemoryTerm term_ = MemoryTerm::other;
};

}  // namespace ebb
