// StartGate: holds every stream of every device until all hosts are ahead, then lets them all go at one moment.
//
// The flag is one word of mapped host memory that a one-thread kernel at the head of each stream watches
// (kernels/gate.hpp). The moment it is opened is time 0 of the step, on the host's clock and, some microseconds later
// (the flag's way to the device, the kernel's end), on the devices'. A gate that nobody opens opens itself.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "replay/cuda.hpp"

namespace ebb::replay {

class StartGate {
 public:
  using Clock = std::chrono::steady_clock;

  StartGate();
  /// Enqueues the wait for `step`, which counts from 1.
  void hold(int step, void* stream) const;
  /// Opens it for `step` and all before, once: later calls change nothing.
  void open(int step);
  bool is_open(int step) const { return opened_.load(std::memory_order_acquire) >= step; }
  /// When it was opened for the step that was opened last.
  Clock::time_point opened_at() const { return opened_at_; }
  /// Whether some gate had to open itself: times of that step mean nothing.
  bool timed_out() const;

 private:
  PinnedBytes words_;  // the flag, and whether a wait timed out
  std::atomic<int> opened_{0};
  std::atomic<int> claimed_{0};
  Clock::time_point opened_at_;
};

}  // namespace ebb::replay
