// A barrier for rank threads that can be broken: when one rank fails, the others must not wait for it for ever.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>

namespace ebb::replay {

/// Thrown in the other threads when the barrier was broken; the error itself is with whoever broke it.
struct Stopped {};

class Barrier {
 public:
  explicit Barrier(int members) : members_(members) {}

  /// Waits, spinning, until all members have come; the last one runs `last` before anybody goes on. Stopped when the
  /// barrier is or gets broken.
  template <class Last>
  void meet(Last&& last) {
    const int round = round_.load(std::memory_order_acquire);
    if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) {
      if (!broken()) last();
      waiting_.store(0, std::memory_order_relaxed);
      round_.fetch_add(1, std::memory_order_acq_rel);
    } else {
      wait_for_round_after(round);
    }
    if (broken()) throw Stopped{};
  }
  void meet() {
    meet([] {});
  }

  /// Keeps the first error and lets everybody go. Callable at any time from any thread.
  void break_with(std::exception_ptr error);
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  /// Throws the first error, if there is one. Call when all threads have ended.
  void rethrow() const;

 private:
  void wait_for_round_after(int round) const;

  const int members_;
  std::atomic<int> waiting_{0};
  std::atomic<int> round_{0};
  std::atomic<bool> broken_{false};
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace ebb::replay
