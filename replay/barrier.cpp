#include "replay/barrier.hpp"

#include <thread>
#include <utility>

namespace ebb::replay {

void Barrier::break_with(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  broken_.store(true, std::memory_order_release);
}

void Barrier::rethrow() const {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

// Spins, so that all ranks go on within a microsecond; yields where there are more ranks than cores.
void Barrier::wait_for_round_after(int round) const {
  while (round_.load(std::memory_order_acquire) == round && !broken()) std::this_thread::yield();
}

}  // namespace ebb::replay
