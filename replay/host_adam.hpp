// Adam on the CPU, by several threads, with the bits of adamw_ref: what cpu-adam's optimizer step costs and computes.
//
// fp32 throughout (HostAdam in program.hpp). The element's arithmetic is that of kernels/adamw_ref.cpp, in a loop that
// the compiler turns into vectors; this file must not be compiled with contraction. Threads take pieces in turn, so
// that a slow core does not hold up the rest.
// Not here: time, the host store.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "kernels/adamw.hpp"
#include "kernels/runs.hpp"

namespace ebb::replay {

/// Threads that wait for work in between. The caller's thread works too.
class HostPool {
 public:
  /// `cpus`: one thread on each; empty: one thread, the caller's.
  explicit HostPool(std::vector<int> cpus);
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  /// Calls work(i) for all i < count, each once, and returns when all have returned. `work` does not throw.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& work);
  std::size_t threads() const { return threads_.size() + 1; }

 private:
  void serve(int cpu);
  void take_all();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::size_t busy_ = 0;
  std::uint64_t round_ = 0;
  bool stop_ = false;
  std::vector<std::jthread> threads_;
};

/// CPUs of `node` (all if -1 or unknown) that this process may use; of `sharers` equal parts the one with this index.
std::vector<int> share_of_cpus(int node, std::size_t index, std::size_t sharers);

/// fp32 arrays in host memory, as AdamwArrays.
struct HostArrays {
  const std::byte* grad = nullptr;
  std::byte* exp_avg = nullptr;
  std::byte* exp_avg_sq = nullptr;
  std::byte* master = nullptr;
};

/// Updates all runs.
void host_adam(HostPool& pool, const HostArrays& arrays, std::span<const kernels::AdamwRun> runs,
               const kernels::AdamwStep& step);

/// The sum of digest_ref over fp32 runs.
std::uint64_t host_digest(HostPool& pool, const std::byte* base, std::span<const kernels::Run> runs, std::uint64_t tag);

}  // namespace ebb::replay
