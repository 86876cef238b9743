#include "planner/term_account.hpp"

#include <vector>

namespace ebb {

namespace {

/// The tensors that are alive while the events of a trace pass by.
class Ledger {
 public:
  explicit Ledger(std::uint32_t tensors) : alive_(tensors) {}

  const TermAccount& account() const { return account_; }
  /// The account at the highest moment of `events`.
  TermAccount pass(std::span<const AllocationEvent> events) {
    TermAccount highest = account_;
    Bytes most = total_;
    for (const AllocationEvent& event : events) {
      pass(event);
      if (total_ <= most) continue;
      most = total_;
      highest = account_;
    }
    return highest;
  }

 private:
  /// A tensor that leaves is not counted any more, as in torch's figures, although its storage is in use.
  void pass(const AllocationEvent& event) {
    AllocationEvent& tensor = alive_[event.tensor];
    switch (event.kind) {
      case AllocationEvent::Kind::allocate:
        tensor = event;
        add(event.term, event.bytes);
        break;
      case AllocationEvent::Kind::release:
      case AllocationEvent::Kind::leave:
        add(tensor.term, Bytes{-tensor.bytes.value});
        tensor.bytes = Bytes{0};
        break;
      case AllocationEvent::Kind::end:
        break;
    }
  }
  void add(MemoryTerm term, Bytes bytes) {
    account_.bytes[static_cast<std::size_t>(term)] += bytes;
    total_ += bytes;
  }

  std::vector<AllocationEvent> alive_;
  TermAccount account_;
  Bytes total_{0};
};

}  // namespace

TermAccount terms_between_steps(const AllocationTrace& trace) {
  Ledger ledger(trace.tensors);
  for (const TracePart& part : trace.parts) {
    ledger.pass(part.events);
    if (part.phase == Phase::step) break;
  }
  return ledger.account();
}

TermAccount terms_at_peak(const AllocationTrace& trace) {
  Ledger ledger(trace.tensors);
  TermAccount highest;
  for (const TracePart& part : trace.parts) {
    const TermAccount in_part = ledger.pass(part.events);
    if (in_part.total() > highest.total()) highest = in_part;
    if (part.phase == Phase::step) break;
  }
  return highest;
}

}  // namespace ebb
