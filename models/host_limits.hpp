// What this machine lets a process hold in host memory, read from /proc and /sys, and whether an amount fits.
//
// Which limit is hard. A cgroup's memory.max is: beyond it the kernel kills. MemTotal is hard on bare metal only: a
// virtual machine may start small and be given memory while it is used, so there too little is a remark, and the store
// fills page by page and watches (host_store.hpp). RLIMIT_MEMLOCK is never hard: NVIDIA's driver on Linux does not
// count the pages it pins against it; it is named when pinning fails, because other drivers and kernels may.
// Not here: /dev/shm (the store uses anonymous memory), allocation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/units.hpp"

namespace ebb {

/// A control group with a limit, or a parent of the process' own.
struct CgroupMemory {
  std::string file;  // that the limit was read from
  Bytes limit{0};
  Bytes used{0};  // without file cache that the kernel drops when asked

  Bytes left() const { return limit - used; }
  bool operator==(const CgroupMemory&) const = default;
};

struct HostLimits {
  std::optional<Bytes> total = std::nullopt;      // MemTotal
  std::optional<Bytes> available = std::nullopt;  // MemAvailable
  bool virtual_machine = false;                   // or not known; then `total` may grow
  std::optional<Bytes> memlock = std::nullopt;    // soft limit; unset: unlimited or unknown
  std::vector<CgroupMemory> cgroups{};

  bool operator==(const HostLimits&) const = default;
};

/// Reads ROOT/proc and ROOT/sys. What cannot be read stays unset: never an error.
HostLimits read_host_limits(const std::string& root = "/");

/// The group with the least left; null without one.
const CgroupMemory* tightest(const HostLimits& limits);

/// What is wrong with asking for more, in one clause each: "" when nothing is.
struct HostVerdict {
  std::string refusal;  // a hard limit is too small: amount, limit and cure
  std::string remark;   // may not fit
};
/// `pinned` and `pageable`: further bytes of all ranks of this host together.
HostVerdict judge_host_memory(Bytes pinned, Bytes pageable, const HostLimits& limits);

/// Why pinning may have failed although nothing refused it: the limits, smallest first, and what to do.
std::string explain_pin_failure(Bytes pinned, const HostLimits& limits);

}  // namespace ebb
