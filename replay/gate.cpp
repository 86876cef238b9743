#include "replay/gate.hpp"

#include <thread>

#include "kernels/gate.hpp"

namespace ebb::replay {

namespace {

constexpr std::uint64_t kTimeoutNs = 20'000'000'000;  // far beyond any enqueueing, soon enough for a user who waits

int* words(const PinnedBytes& memory) { return static_cast<int*>(memory.host()); }

}  // namespace

StartGate::StartGate() : words_({2 * static_cast<std::int64_t>(sizeof(int))}) {}

void StartGate::hold(int step, void* stream) const {
  int* const device = static_cast<int*>(words_.device());
  check(kernels::launch_gate(device, step, kTimeoutNs, device + 1, stream), "launch_gate");
}

void StartGate::open(int step) {
  int claimed = claimed_.load();
  while (claimed < step && !claimed_.compare_exchange_weak(claimed, step)) {
  }
  if (claimed >= step) {  // somebody else does
    while (!is_open(step)) std::this_thread::yield();
    return;
  }
  opened_at_ = Clock::now();
  std::atomic_ref<int>(*words(words_)).store(step, std::memory_order_release);
  opened_.store(step, std::memory_order_release);
}

bool StartGate::timed_out() const {
  return std::atomic_ref<int>(words(words_)[1]).load(std::memory_order_acquire) != 0;
}

}  // namespace ebb::replay
