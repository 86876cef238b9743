#include "models/memory_curve.hpp"

#include <algorithm>

#include "models/errors.hpp"

namespace ebb {

LiveBytes initial_bytes(const Plan& plan) {
  LiveBytes live;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.initial) live.add(buffer, MemoryEvent::What::allocate);
  return live;
}

void memory_events(const Plan& plan, const Timeline& timeline, std::vector<MemoryEvent>& events) {
  using What = MemoryEvent::What;
  events.clear();
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.kind != OpKind::allocate && op.kind != OpKind::release) continue;
    EBB_ASSERT(op.buffer.index < plan.buffers.size());
    if (op.kind == OpKind::allocate) {
      events.push_back({timeline.start[i], i, What::allocate});
      continue;
    }
    const Ticks released = timeline.end[i];
    Ticks handed_back = released;
    if (op.after.valid()) {
      EBB_ASSERT(op.after.index < plan.ops.size());
      handed_back = std::max(released, timeline.end[op.after.index]);
    }
    if (handed_back == released) {
      events.push_back({released, i, What::release_and_hand_back});
    } else {
      events.push_back({released, i, What::release});
      events.push_back({handed_back, i, What::hand_back});
    }
  }
  std::sort(events.begin(), events.end());
}

}  // namespace ebb
