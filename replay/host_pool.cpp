// Threads of the CPU's Adam: which CPUs, and how work is handed out.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "replay/host_adam.hpp"

namespace ebb::replay {

namespace {

/// "0-3,8,10-11" -> 0 1 2 3 8 10 11; what is not understood is left out.
std::vector<int> parse_cpus(const std::string& text) {
  std::vector<int> cpus;
  const char* at = text.c_str();
  while (*at >= '0' && *at <= '9') {
    char* end = nullptr;
    const long first = std::strtol(at, &end, 10);
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    for (long cpu = first; cpu <= last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    at = *end == ',' ? end + 1 : end;
  }
  return cpus;
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

std::vector<int> share_of_cpus(int node, std::size_t index, std::size_t sharers) {
  const std::vector<int> allowed = allowed_cpus();
  std::vector<int> cpus;
  if (node >= 0) {
    std::ifstream file("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
    std::string text;
    std::getline(file, text);
    for (const int cpu : parse_cpus(text)) {
      if (std::binary_search(allowed.begin(), allowed.end(), cpu)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus = allowed;
  const std::size_t begin = cpus.size() * index / sharers;
  const std::size_t end = cpus.size() * (index + 1) / sharers;
  if (begin == end) return {};
  return {cpus.begin() + static_cast<std::ptrdiff_t>(begin), cpus.begin() + static_cast<std::ptrdiff_t>(end)};
}

HostPool::HostPool(std::vector<int> cpus) {
  // The first is for the caller, who is not tied to it.
  for (std::size_t i = 1; i < cpus.size(); ++i) threads_.emplace_back([this, cpu = cpus[i]] { serve(cpu); });
}

HostPool::~HostPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
}

void HostPool::for_each(std::size_t count, const std::function<void(std::size_t)>& work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    count_ = count;
    next_.store(0);
    busy_ = threads_.size();
    ++round_;
  }
  wake_.notify_all();
  take_all();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
}

void HostPool::take_all() {
  for (std::size_t i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) (*work_)(i);
}

void HostPool::serve(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // a wish: any CPU computes the same
  std::uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
    }
    take_all();
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace ebb::replay
