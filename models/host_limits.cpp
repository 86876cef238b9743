// Sources: proc(5) for meminfo, limits and cgroup; the kernel's cgroup-v2 and cgroup-v1 memory documents for the files.
#include "models/host_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

#include "models/quantity_text.hpp"

namespace ebb {

namespace {

constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;  // version 1 writes "no limit" as 2^63 less a page

std::optional<std::string> first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

/// The number at the beginning of `text`; unset for "max", "unlimited" and the like.
std::optional<std::int64_t> number_in(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t:");
  std::int64_t value = 0;
  if (at == std::string_view::npos) return std::nullopt;
  if (std::from_chars(text.data() + at, text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

/// The number behind `key` on the line that begins with it.
std::optional<std::int64_t> number_behind(const std::string& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    if (const auto value = number_in(std::string_view(line).substr(key.size()))) return value;
  }
  return std::nullopt;
}

std::optional<Bytes> kibibytes_behind(const std::string& file, std::string_view key) {
  const auto value = number_behind(file, key);
  if (!value) return std::nullopt;
  return Bytes{*value * 1024};
}

/// Names of one version's files below its mount point.
struct CgroupFiles {
  std::string_view mount;
  std::string_view limit;
  std::string_view used;
  std::string_view cache;  // in memory.stat
};
constexpr CgroupFiles kVersion1{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file "};
constexpr CgroupFiles kVersion2{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};

/// The group at `path` below the mount point and all its parents. A container may not see its own path: then only the
/// mount point is there, which is its group.
void read_groups(const std::string& root, const CgroupFiles& files, std::string path,
                 std::vector<CgroupMemory>& groups) {
  while (true) {
    while (path.ends_with('/')) path.pop_back();
    const std::string directory = fmt::format("{}/{}{}/", root, files.mount, path);
    const std::string limit_file = directory + std::string(files.limit);
    const auto limit = number_in(first_line(limit_file).value_or(""));
    if (limit && *limit < kUnlimited) {
      const std::int64_t used = number_in(first_line(directory + std::string(files.used)).value_or("")).value_or(0);
      const std::int64_t cache = number_behind(directory + "memory.stat", files.cache).value_or(0);
      groups.push_back({limit_file, {*limit}, {std::max<std::int64_t>(used - cache, 0)}});
    }
    if (path.empty()) return;
    path.erase(path.rfind('/'));
  }
}

/// Lines of /proc/self/cgroup are "number:controllers:path"; version 2 has number 0 and no controllers.
std::vector<CgroupMemory> read_cgroups(const std::string& root) {
  std::vector<CgroupMemory> groups;
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos || line.size() <= second + 1) continue;
    if (line[second + 1] != '/') continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") read_groups(root, kVersion2, path, groups);
    if (controllers.find(",memory,") != std::string::npos) read_groups(root, kVersion1, path, groups);
  }
  return groups;
}

/// x86 kernels list "hypervisor" among the CPU's flags when there is one. Without flags it is unknown: then it may be.
bool may_be_virtual(const std::string& root) {
  std::ifstream in(root + "/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("flags")) continue;
    return (line + " ").find(" hypervisor ") != std::string::npos;
  }
  return true;
}

std::string need_text(Bytes pinned, Bytes pageable) {
  if (pageable.value == 0) return format_bytes(pinned) + " of pinned host memory";
  return fmt::format("{} of host memory ({} pinned)", format_bytes(pinned + pageable), format_bytes(pinned));
}

}  // namespace

const CgroupMemory* tightest(const HostLimits& limits) {
  const auto less = [](const CgroupMemory& a, const CgroupMemory& b) { return a.left() < b.left(); };
  const auto it = std::min_element(limits.cgroups.begin(), limits.cgroups.end(), less);
  return it == limits.cgroups.end() ? nullptr : &*it;
}

HostLimits read_host_limits(const std::string& root) {
  const std::string meminfo = root + "/proc/meminfo";
  HostLimits limits;
  limits.total = kibibytes_behind(meminfo, "MemTotal:");
  limits.available = kibibytes_behind(meminfo, "MemAvailable:");
  limits.virtual_machine = may_be_virtual(root);
  if (const auto locked = number_behind(root + "/proc/self/limits", "Max locked memory")) limits.memlock = {*locked};
  limits.cgroups = read_cgroups(root);
  return limits;
}

HostVerdict judge_host_memory(Bytes pinned, Bytes pageable, const HostLimits& limits) {
  const Bytes needed = pinned + pageable;
  HostVerdict verdict;
  if (needed.value == 0) return verdict;
  const CgroupMemory* group = tightest(limits);
  if (group != nullptr && needed > group->left()) {
    verdict.refusal = fmt::format(
        "{} are needed, and this control group has {} left ({} allows {}, {} are used); raise the container's memory "
        "limit (docker --memory, Slurm --mem, Kubernetes resources.limits.memory) or offload less",
        need_text(pinned, pageable), format_bytes(group->left()), group->file, format_bytes(group->limit),
        format_bytes(group->used));
    return verdict;
  }
  if (limits.total && needed > *limits.total && !limits.virtual_machine) {
    verdict.refusal = fmt::format(
        "{} are needed, and this host has {} in all (MemTotal); use a host with more memory, "
        "fewer ranks on it, or offload less",
        need_text(pinned, pageable), format_bytes(*limits.total));
    return verdict;
  }
  if (limits.available && needed > *limits.available) {
    verdict.remark =
        fmt::format("{} are needed, and {} are available now (MemAvailable){}", need_text(pinned, pageable),
                    format_bytes(*limits.available),
                    limits.virtual_machine ? "; a virtual machine may be given more while it is used" : "");
  }
  return verdict;
}

std::string explain_pin_failure(Bytes pinned, const HostLimits& limits) {
  std::string limit_text;
  const auto add = [&limit_text](const std::string& clause) {
    if (!limit_text.empty()) limit_text += ", ";
    limit_text += clause;
  };
  const CgroupMemory* group = tightest(limits);
  if (group != nullptr)
    add(fmt::format("the control group has {} left ({})", format_bytes(group->left()), group->file));
  if (limits.available) add(fmt::format("MemAvailable is {}", format_bytes(*limits.available)));
  if (limits.memlock) add(fmt::format("the limit on locked memory is {} (ulimit -l)", format_bytes(*limits.memlock)));
  std::string cure = "offload less, or free host memory";
  if (limits.memlock && *limits.memlock < pinned)
    cure = "set 'ulimit -l unlimited' (docker --ulimit memlock=-1), " + cure;
  return fmt::format("{}; {}", limit_text.empty() ? "no limit could be read" : limit_text, cure);
}

}  // namespace ebb
