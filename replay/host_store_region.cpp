#include "replay/host_store_region.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "replay/numa.hpp"

namespace ebb::replay {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr auto kLookAgain = std::chrono::milliseconds(20);

int thread_count(int wanted) {
  if (wanted > 0) return wanted;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U));
}

/// Writes to every page of [begin, begin + bytes).
void touch(std::byte* begin, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kPage) *static_cast<volatile std::byte*>(begin + at) = std::byte{0};
}

/// The same, shared out to threads in whole huge pages, so that no two of them meet on one.
void touch_in_parallel(std::byte* begin, std::size_t bytes, int threads) {
  const std::size_t share = (bytes / static_cast<std::size_t>(threads) / kHugePage + 1) * kHugePage;
  std::vector<std::jthread> workers;
  for (std::size_t at = share; at < bytes; at += share) {
    workers.emplace_back(touch, begin + at, std::min(share, bytes - at));
  }
  touch(begin, std::min(share, bytes));
}

std::optional<Bytes> room_in(const HostLimits& limits) {
  std::optional<Bytes> room = limits.available;
  if (const CgroupMemory* group = tightest(limits)) room = room ? std::min(*room, group->left()) : group->left();
  return room;
}

/// Returns when there is room for `bytes`, or nothing is known about it; IoError when it stays short for too long.
void wait_for_room(Bytes bytes, Bytes filled, Bytes whole, const FillOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto patience = std::chrono::duration<double>(options.patience.value);
  std::optional<Bytes> seen;
  Clock::time_point since = Clock::now();
  while (true) {
    const HostLimits limits = options.limits();
    const std::optional<Bytes> room = room_in(limits);
    if (!room || *room >= bytes + options.keep) return;
    if (!seen || *room > *seen) {
      seen = room;
      since = Clock::now();
    }
    if (Clock::now() - since > patience) {
      throw IoError(fmt::format("host memory ran out after {} of {}: {}", format_bytes(filled), format_bytes(whole),
                                explain_pin_failure(whole, limits)));
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

/// Regions of several ranks are filled in turns: each looks at what is left, which the others must not take meanwhile.
std::mutex& fill_mutex() {
  static std::mutex mutex;
  return mutex;
}

void fill(std::byte* data, Bytes bytes, const FillOptions& options) {
  const int threads = thread_count(options.threads);
  for (Bytes at{0}; at < bytes; at += options.step) {
    const Bytes step = std::min(options.step, bytes - at);
    const std::lock_guard lock(fill_mutex());
    wait_for_room(step, at, bytes, options);
    touch_in_parallel(data + at.value, static_cast<std::size_t>(step.value), threads);
  }
}

}  // namespace

HostRegion::HostRegion(Bytes bytes, const FillOptions& options) : bytes_(bytes) {
  EBB_ASSERT(bytes.value >= 0 && options.step.value > 0);
  if (bytes.value == 0) return;
  mapped_ = static_cast<std::size_t>(bytes.value) + kHugePage;
  // No reservation: what is there is counted while it is filled.
  void* mapping = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    throw IoError(fmt::format("cannot map {} of host memory: {} (a limit on virtual memory, ulimit -v?)",
                              format_bytes(bytes), std::strerror(errno)));
  }
  HostRegion unmaps_on_error;
  unmaps_on_error.mapping_ = mapping;
  unmaps_on_error.mapped_ = mapped_;
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  data_ = static_cast<std::byte*>(mapping) + ((address + kHugePage - 1) / kHugePage * kHugePage - address);
  madvise(data_, static_cast<std::size_t>(bytes.value), MADV_HUGEPAGE);  // a wish
  if (options.node) placed_ = prefer_node(data_, static_cast<std::size_t>(bytes.value), *options.node);
  fill(data_, bytes, options);
  mapping_ = std::exchange(unmaps_on_error.mapping_, nullptr);
}

HostRegion::~HostRegion() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

}  // namespace ebb::replay
