#include "planner/peak_bound.hpp"

#include <algorithm>

#include "models/op_order.hpp"

namespace ebb {

namespace {

struct Life {
  BufferId buffer;
  OpId began;     // none(): before the plan
  OpId released;  // none(): never
};

/// Lives of device buffers, in the order in which they begin. An allocation of a buffer that is alive and a release of
/// one that is not are ignored: verify() reports them.
std::vector<Life> lives_of(const Plan& plan) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<Life> lives;
  std::vector<std::size_t> open(plan.buffers.size(), kNone);
  const auto begin = [&](BufferId buffer, OpId op) {
    if (plan.buffers[buffer.index].memory != Memory::device || open[buffer.index] != kNone) return;
    open[buffer.index] = lives.size();
    lives.push_back({buffer, op, OpId::none()});
  };
  for (std::uint32_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].initial) begin({b}, OpId::none());
  }
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.kind == OpKind::allocate) begin(op.buffer, {i});
    if (op.kind != OpKind::release || open[op.buffer.index] == kNone) continue;
    lives[open[op.buffer.index]].released = {i};
    open[op.buffer.index] = kNone;
  }
  return lives;
}

/// Of the two ops that hand a life's storage back, the one that need not have ended before `op` starts; none() when
/// both have.
OpId pending_hand_back(const Plan& plan, const Order& order, const Life& life, OpId op) {
  if (!order.before(life.released, op)) return life.released;
  const OpId after = plan.ops[life.released.index].after;
  return after.valid() && !order.before(after, op) ? after : OpId::none();
}

bool on_one_stream(const Plan& plan, const std::vector<Life>& lives) {
  StreamId stream = StreamId::none();
  return std::all_of(lives.begin(), lives.end(), [&](const Life& life) {
    if (!life.began.valid()) return true;
    if (!stream.valid()) stream = plan.ops[life.began.index].stream;
    return plan.ops[life.began.index].stream == stream;
  });
}

class Bound {
 public:
  explicit Bound(const Plan& plan) : plan_(plan), order_(plan), lives_(lives_of(plan)) {}
  PeakBound run();

 private:
  bool gone(const Life& life, OpId at) const {
    return life.released.valid() && !pending_hand_back(plan_, order_, life, at).valid();
  }
  Bytes bytes(const Life& life) const { return plan_.buffers[life.buffer.index].bytes; }
  void consider(OpId at, const std::vector<std::size_t>& counted);
  void name_missing();

  const Plan& plan_;
  Order order_;
  std::vector<Life> lives_;
  std::vector<std::size_t> at_peak_;  // into lives_
  PeakBound peak_;
};

void Bound::consider(OpId at, const std::vector<std::size_t>& counted) {
  Bytes sum{0};
  for (const std::size_t life : counted) sum += bytes(lives_[life]);
  if (sum <= peak_.bytes) return;
  peak_.bytes = sum;
  peak_.at = at;
  at_peak_ = counted;
}

void Bound::name_missing() {
  std::stable_sort(at_peak_.begin(), at_peak_.end(),
                   [&](std::size_t a, std::size_t b) { return bytes(lives_[a]) > bytes(lives_[b]); });
  for (const std::size_t index : at_peak_) {
    const Life& life = lives_[index];
    peak_.alive.push_back(life.buffer);
    if (peak_.missing || !peak_.at.valid() || !life.released.valid() || life.released >= peak_.at) continue;
    const OpId pending = pending_hand_back(plan_, order_, life, peak_.at);
    if (pending.valid() && pending < peak_.at) peak_.missing = Edge{pending, peak_.at};
  }
}

PeakBound Bound::run() {
  // Where allocations follow each other, what is gone at one of them is gone at all later ones, and what begins later
  // has not begun.
  const bool serial = on_one_stream(plan_, lives_);
  std::vector<std::size_t> begun;
  std::vector<std::size_t> counted;
  std::size_t next = 0;
  for (; next < lives_.size() && !lives_[next].began.valid(); ++next) begun.push_back(next);
  consider(OpId::none(), begun);
  for (; next < lives_.size(); ++next) {
    const OpId at = lives_[next].began;
    if (serial) std::erase_if(begun, [&](std::size_t life) { return gone(lives_[life], at); });
    begun.push_back(next);
    counted = begun;
    if (!serial) {
      std::erase_if(counted, [&](std::size_t life) { return gone(lives_[life], at); });
      for (std::size_t later = next + 1; later < lives_.size(); ++later) {
        if (!order_.before(at, lives_[later].began)) counted.push_back(later);
      }
    }
    consider(at, counted);
  }
  name_missing();
  return std::move(peak_);
}

}  // namespace

PeakBound peak_bound(const Plan& plan) { return Bound(plan).run(); }

void find_excess(const Plan& plan, Bytes budget, std::vector<Hazard>& hazards) {
  const PeakBound peak = peak_bound(plan);
  if (peak.bytes <= budget) return;
  const std::string where = peak.at.valid() ? "at " + describe(plan, peak.at) : std::string("before the first op");
  std::string text = std::to_string(peak.bytes.value) + " bytes may be alive " + where + ", " +
                     std::to_string((peak.bytes - budget).value) + " over the budget of " +
                     std::to_string(budget.value) + " [";
  for (std::size_t i = 0; i < peak.alive.size(); ++i) {
    const Buffer& buffer = plan.buffers[peak.alive[i].index];
    text.append(i == 0 ? "" : ", ").append(buffer.name).append(" ").append(std::to_string(buffer.bytes.value));
  }
  text += "]";
  if (peak.missing) text += describe(plan, *peak.missing);
  const BufferId largest = peak.alive.empty() ? BufferId::none() : peak.alive.front();
  const OpId pending = peak.missing ? peak.missing->first : OpId::none();
  hazards.push_back({HazardKind::over_budget, peak.at, pending, largest, peak.missing, std::move(text)});
}

}  // namespace ebb
