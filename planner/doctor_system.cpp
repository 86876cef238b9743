// What pages, shared memory and the disk of checkpoints mean for a plan.
#include <fmt/format.h>

#include "models/quantity_text.hpp"
#include "planner/doctor_parts.hpp"

namespace ebb::doctor {

/// hugetlb's pages are taken from the free ones when they are set aside; pinned state cannot use them.
HostFinding huge_pages(const HostFacts& facts) {
  const std::string& mode = facts.transparent_huge_pages;
  HostFinding found{.topic = "huge pages"};
  found.figure = fmt::format("transparent: {}; set aside: {}", mode.empty() ? "not told" : mode,
                             facts.huge_pages.value == 0 ? "none" : format_bytes(facts.huge_pages));
  if (facts.huge_pages.value > 0) {
    found.verdict = Verdict::note;
    found.consequence = "pinned state cannot use what is set aside";
    found.cure = "sysctl vm.nr_hugepages=0, unless something needs them";
  } else if (mode == "never") {
    found.verdict = Verdict::note;
    found.consequence = "pinning goes page by page and takes longer";
    found.cure = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  }
  return found;
}

/// docker gives 64 MiB unless told otherwise. NCCL's transport within a host and data loaders use it (NVIDIA, NCCL user
/// guide, troubleshooting: sharing data).
HostFinding shared_memory(const HostFacts& facts, const Need& need) {
  HostFinding found{.topic = "/dev/shm"};
  if (facts.shared_memory && *facts.shared_memory >= 1_GiB) {
    found.figure = format_bytes(*facts.shared_memory);
    return found;
  }
  found.figure = facts.shared_memory ? format_bytes(*facts.shared_memory) : "not mounted";
  found.verdict = need && need->ranks > 1 ? Verdict::problem : Verdict::note;
  found.consequence = "NCCL and data loaders share memory there";
  found.cure = "docker --shm-size=16g or --ipc=host";
  return found;
}

std::optional<HostFinding> disk(const HostFacts& facts, const Need& need) {
  if (!facts.disk && !need) return std::nullopt;
  HostFinding found{.topic = "disk"};
  const std::string checkpoint = need ? fmt::format("a checkpoint takes {}", format_bytes(need->checkpoint)) : "";
  if (!facts.disk) {
    found.figure = checkpoint;
    found.consequence = "--checkpoint DIR says whether it fits";
    return found;
  }
  const std::string type = facts.disk->filesystem.empty() ? "a file system not told" : facts.disk->filesystem;
  const DiskFacts& at = *facts.disk;
  found.figure = at.nearest.empty() ? fmt::format("{}: {}, {} free", at.directory, type, format_bytes(at.free))
                                    : fmt::format("{} is missing; {}: {}, {} free", at.directory, at.nearest, type,
                                                  format_bytes(at.free));
  found.consequence = checkpoint;
  if (need && need->checkpoint > facts.disk->free) {
    found.verdict = Verdict::problem;
    found.cure = "save elsewhere, or keep fewer checkpoints";
  } else if (!at.nearest.empty()) {
    found.verdict = Verdict::note;
    if (checkpoint.empty()) found.consequence = "a save makes it, where it may";
    found.cure = "create it, or see whether its disk is mounted";
  } else if (type == "tmpfs" || type == "overlay") {
    found.verdict = Verdict::note;
    found.cure = type == "tmpfs" ? "this is memory: it counts beside pinned state"
                                 : "this goes with the container: mount a disk";
  }
  return found;
}

}  // namespace ebb::doctor
