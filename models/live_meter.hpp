// LiveMeter: live bytes by phase in the order in which a host issues a plan's ops: as allocators count, which know
// nothing of when the device gets there. The simulator's side walks a plan with it, a replay what it really allocates
// and frees; so the two can be compared to the byte.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "models/plan.hpp"

namespace ebb {

class LiveMeter {
 public:
  /// `live`: before the first op.
  explicit LiveMeter(Bytes live = {0}) : live_(live), peak_(live) {}

  /// Before every op: what is alive now counts for its phase.
  void enter(Phase phase) {
    if (now_ < by_phase_.size() && by_phase_[now_].first == phase) return;
    now_ = 0;
    while (now_ < by_phase_.size() && by_phase_[now_].first != phase) ++now_;
    if (now_ == by_phase_.size()) by_phase_.emplace_back(phase, live_);
    by_phase_[now_].second = std::max(by_phase_[now_].second, live_);
  }
  /// The op allocates (above 0) or releases (below). Precondition: enter().
  void change(Bytes bytes) {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
    by_phase_[now_].second = std::max(by_phase_[now_].second, live_);
  }

  Bytes peak() const { return peak_; }
  /// Peaks, in order of appearance.
  const std::vector<std::pair<Phase, Bytes>>& by_phase() const { return by_phase_; }

 private:
  Bytes live_;
  Bytes peak_;
  std::vector<std::pair<Phase, Bytes>> by_phase_;
  std::size_t now_ = 0;
};

/// Device bytes that live before the plan's first op.
inline Bytes initial_device_bytes(const Plan& plan) {
  Bytes bytes{0};
  for (const Buffer& buffer : plan.buffers)
    if (buffer.initial && buffer.memory == Memory::device) bytes += buffer.bytes;
  return bytes;
}

}  // namespace ebb
