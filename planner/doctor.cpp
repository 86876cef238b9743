// What each fact means. Sources of the rules stand beside them; those that other parts of Ebb already apply are theirs
// (models/host_limits.hpp: which limit is hard).
#include "planner/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "models/quantity_text.hpp"

namespace ebb {

namespace {

using Need = std::optional<HostNeed>;

bool is_virtual(const HostFacts& facts) { return facts.limits.virtual_machine; }

Bytes wanted(const HostNeed& need) { return need.pinned + need.pageable; }

std::string wanted_text(const HostNeed& need) {
  return fmt::format("the plan needs {} ({} pinned)", format_bytes(wanted(need)), format_bytes(need.pinned));
}

/// WSL: pinned memory is limited, by an amount that is not published (NVIDIA, "CUDA on WSL", limitations), and the
/// machine gets half of Windows' memory unless .wslconfig says otherwise (Microsoft, "Advanced settings in WSL").
HostFinding machine(const HostFacts& facts, const Need& need) {
  HostFinding found{.topic = "machine", .figure = is_virtual(facts) ? "a virtual machine, or not told" : "bare metal"};
  if (!facts.container.empty())
    found.figure =
        fmt::format("in a {}", facts.container == "container" ? "container" : facts.container + " container");
  if (!facts.wsl) return found;
  found.verdict = Verdict::note;
  found.figure = "WSL 2";
  found.consequence = "CUDA pins only a part of its memory there, how much is not told";
  if (need && need->pinned.value > 0)
    found.consequence += fmt::format(", and the plan pins {}", format_bytes(need->pinned));
  found.cure = "raise memory= in .wslconfig, try ebb-replay run before you rely on it";
  return found;
}

HostFinding memory(const HostFacts& facts, const Need& need) {
  const HostLimits& limits = facts.limits;
  HostFinding found{.topic = "memory"};
  if (!limits.total) {
    found.verdict = Verdict::note;
    found.figure = "not told (/proc/meminfo)";
    found.consequence = "whether pinned state fits cannot be checked";
    return found;
  }
  found.figure = format_bytes(*limits.total);
  if (limits.available) found.figure += fmt::format(", {} available", format_bytes(*limits.available));
  if (!need) return found;
  found.consequence = wanted_text(*need);
  if (wanted(*need) > *limits.total) {
    found.verdict = is_virtual(facts) && !facts.wsl ? Verdict::note : Verdict::problem;
    if (found.verdict == Verdict::note) found.consequence += "; a virtual machine may be given more while it is used";
    found.cure = "use a host with more memory, or offload less (ebb plan --host-budget)";
  } else if (limits.available && wanted(*need) > *limits.available) {
    found.verdict = is_virtual(facts) ? Verdict::note : Verdict::problem;
    found.cure = "end what else uses the memory";
  }
  return found;
}

HostFinding control_group(const HostFacts& facts, const Need& need) {
  HostFinding found{.topic = "cgroup", .figure = "no limit on memory"};
  const CgroupMemory* group = tightest(facts.limits);
  if (group == nullptr) return found;
  found.verdict = Verdict::note;
  found.figure = fmt::format("{} of {} left", format_bytes(group->left()), format_bytes(group->limit));
  found.consequence = "beyond it the kernel kills the job";
  if (!need) return found;
  found.consequence = wanted_text(*need);
  found.verdict = wanted(*need) > group->left() ? Verdict::problem : Verdict::ok;
  if (found.verdict == Verdict::problem)
    found.cure = "raise it: docker --memory, Slurm --mem, Kubernetes resources.limits.memory";
  return found;
}

/// NVIDIA's driver pins pages itself and does not count them; what RDMA registers counts (Linux
/// drivers/infiniband/core/umem.c, ib_umem_get), so NCCL over InfiniBand or RoCE fails below what its buffers take.
HostFinding locked_memory(const HostFacts& facts, const Need& need) {
  HostFinding found{.topic = "memlock", .figure = "unlimited"};
  if (!facts.limits.memlock) return found;
  found.figure = fmt::format("{} (ulimit -l)", format_bytes(*facts.limits.memlock));
  if (facts.may_lock) {
    found.consequence = "does not bind a process with CAP_IPC_LOCK";
    return found;
  }
  found.verdict = Verdict::note;
  found.consequence = "CUDA's pinning is not counted against it; RDMA's registrations are";
  const bool rdma = need && need->hosts > 1 && facts.infiniband;
  if (rdma && *facts.limits.memlock < 1_GiB) found.verdict = Verdict::problem;
  found.cure = "ulimit -l unlimited (docker --ulimit memlock=-1)";
  return found;
}

/// GPUs of each node; those whose node is not told are under -1.
std::map<int, std::int64_t> gpus_by_node(const HostFacts& facts, std::int64_t most) {
  std::map<int, std::int64_t> count;
  for (const GpuFacts& gpu : facts.gpus)
    if (most-- > 0) ++count[gpu.node.value_or(-1)];
  return count;
}

std::string nodes_text(const HostFacts& facts, const std::map<int, std::int64_t>& gpus) {
  std::string text;
  for (const NumaNode& node : facts.nodes) {
    const auto here = gpus.find(node.number);
    text += fmt::format("{}node {}: {}, {} GPU{}", text.empty() ? "" : "; ", node.number, format_bytes(node.total),
                        here == gpus.end() ? 0 : here->second, here != gpus.end() && here->second == 1 ? "" : "s");
  }
  return text;
}

/// State is pinned near its GPU. What does not fit there lies on another node, behind the link between the sockets.
std::optional<HostFinding> numa(const HostFacts& facts, const Need& need) {
  if (facts.nodes.empty()) return std::nullopt;
  HostFinding found{.topic = "numa"};
  const auto gpus = gpus_by_node(facts, need ? need->ranks : INT64_MAX);
  found.figure = nodes_text(facts, gpus);
  if (facts.nodes.size() == 1) return found;
  if (gpus.count(-1) > 0) {
    found.verdict = Verdict::note;
    found.consequence = "the GPUs' nodes are not told, so state may be pinned on the wrong one";
    found.cure = "bind each rank: numactl --cpunodebind --membind";
    return found;
  }
  if (!need || need->ranks == 0) return found;
  for (const NumaNode& node : facts.nodes) {
    const auto here = gpus.find(node.number);
    if (here == gpus.end()) continue;
    const Bytes share{wanted(*need).value / need->ranks * here->second};
    if (share <= node.total) continue;
    found.verdict = Verdict::problem;
    found.consequence = fmt::format("{} ranks want {} of node {}", here->second, format_bytes(share), node.number);
    found.cure = "offload less, or numactl --interleave=all and slower copies";
    return found;
  }
  found.consequence = fmt::format("each rank wants {} of its node", format_bytes({wanted(*need).value / need->ranks}));
  return found;
}

/// The newest CUDA major version that a driver runs. Source: NVIDIA, "CUDA Compatibility", minor version compatibility
/// (11.x from 450, 12.x from 525, 13.x from 580 on).
int cuda_of(const std::string& driver) {
  int branch = 0;
  std::from_chars(driver.data(), driver.data() + driver.size(), branch);
  return branch >= 580 ? 13 : branch >= 525 ? 12 : branch >= 450 ? 11 : 0;
}

HostFinding driver(const HostFacts& facts, const Need& need) {
  HostFinding found{.topic = "driver"};
  if (const int cuda = cuda_of(facts.driver); cuda > 0) {
    found.figure = fmt::format("{}: programs built with CUDA {} or older run", facts.driver, cuda);
  } else if (!facts.driver.empty()) {
    found.verdict = need ? Verdict::problem : Verdict::note;
    found.figure = facts.driver;
    found.consequence = "no CUDA 11 or newer runs with it";
    found.cure = "install driver 580 or newer";
  } else if (facts.windows_driver) {
    found.figure = "Windows' (/dev/dxg)";
  } else {
    found.verdict = need ? Verdict::problem : Verdict::note;
    found.figure = "no NVIDIA driver";
    found.consequence = "ebb plans here, ebb-replay runs with --device cpu; nothing trains";
    found.cure = need ? "run this on the host that trains" : "";
  }
  return found;
}

std::string names_of(const std::vector<GpuFacts>& gpus) {
  std::vector<std::string> names;
  for (const GpuFacts& gpu : gpus)
    if (!gpu.name.empty() && std::find(names.begin(), names.end(), gpu.name) == names.end()) names.push_back(gpu.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

HostFinding devices(const HostFacts& facts, const Need& need) {
  const auto seen = static_cast<std::int64_t>(facts.gpus.size());
  const std::string names = names_of(facts.gpus);
  HostFinding found{.topic = "gpus"};
  found.figure =
      fmt::format("{} on PCI{}", seen == 0 ? "none" : std::to_string(seen), names.empty() ? "" : ": " + names);
  if (seen == 0 && facts.windows_driver) {
    found.verdict = Verdict::note;
    found.consequence = "Windows does not show them here";
    return found;
  }
  if (!need) return found;
  if (seen < need->ranks) {
    found.verdict = Verdict::problem;
    found.consequence = fmt::format("the job wants {} on a host", need->ranks);
    found.cure = "start it on more hosts (cluster: gpus_per_host), or see whether the container has them all";
  } else if (!names.empty() && names.find(need->gpu) == std::string::npos &&
             need->gpu.find(names) == std::string::npos) {
    found.verdict = Verdict::note;
    found.consequence = fmt::format("the plan's figures are those of {}", need->gpu);
    found.cure = "name the right cluster, or measure one: ebb-replay calibrate";
  }
  return found;
}

std::string text_of(const PcieLink& link) {
  return fmt::format("PCIe {:g} GT/s x{} ({} each way)", link.gigatransfers, link.width, format_bandwidth(link.rate()));
}

/// The slowest of all, at the rate that it can have: GPUs lower theirs while they are idle. NVLink between host and GPU
/// (Grace) does not show here.
std::optional<HostFinding> link(const HostFacts& facts, const Need& need) {
  const GpuFacts* slowest = nullptr;
  PcieLink least;
  for (const GpuFacts& gpu : facts.gpus) {
    PcieLink at_work{gpu.most.gigatransfers, gpu.now.width > 0 ? gpu.now.width : gpu.most.width};
    if (!(at_work.rate().value > 0)) continue;
    if (slowest == nullptr || at_work.rate() < least.rate()) {
      slowest = &gpu;
      least = at_work;
    }
  }
  if (slowest == nullptr) return std::nullopt;
  HostFinding found{.topic = "link", .figure = text_of(least)};
  if (least.width < slowest->most.width) {
    found.verdict = Verdict::note;
    found.consequence =
        fmt::format("{} has {} of its {} lanes, so copies take {:.3g} times as long", slowest->address, least.width,
                    slowest->most.width, static_cast<double>(slowest->most.width) / least.width);
    found.cure = "reseat the card, or see the slot and the BIOS";
  } else if (slowest->now.gigatransfers > 0 && slowest->now.gigatransfers < slowest->most.gigatransfers) {
    found.consequence = fmt::format("{:g} GT/s now: GPUs lower it while they are idle", slowest->now.gigatransfers);
  }
  // Grace's GPUs are on NVLink: their copies exceed what PCIe carries.
  const bool on_pcie =
      need && need->gpu.find("GH200") == std::string::npos && need->gpu.find("GB200") == std::string::npos;
  if (on_pcie && need->h2d > least.rate()) {
    found.verdict = Verdict::problem;
    found.consequence = fmt::format("the plan's times count on {}", format_bandwidth(need->h2d));
    found.cure = "measure this host: ebb-replay calibrate -o cluster.yaml, and plan with it";
  }
  return found;
}

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
  found.figure = fmt::format("{}: {}, {} free", facts.disk->directory, type, format_bytes(facts.disk->free));
  found.consequence = checkpoint;
  if (need && need->checkpoint > facts.disk->free) {
    found.verdict = Verdict::problem;
    found.cure = "save elsewhere, or keep fewer checkpoints";
  } else if (type == "tmpfs" || type == "overlay") {
    found.verdict = Verdict::note;
    found.cure = type == "tmpfs" ? "this is memory: it counts beside pinned state"
                                 : "this goes with the container: mount a disk";
  }
  return found;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::note:
      return "note";
    case Verdict::problem:
      return "problem";
  }
  return "";
}

std::vector<HostFinding> diagnose(const HostFacts& facts, const std::optional<HostNeed>& need) {
  std::vector<HostFinding> findings;
  const auto add = [&findings](std::optional<HostFinding> found) {
    if (found) findings.push_back(std::move(*found));
  };
  add(machine(facts, need));
  add(memory(facts, need));
  add(control_group(facts, need));
  add(locked_memory(facts, need));
  add(numa(facts, need));
  add(driver(facts, need));
  add(devices(facts, need));
  add(link(facts, need));
  add(huge_pages(facts));
  add(shared_memory(facts, need));
  add(disk(facts, need));
  return findings;
}

}  // namespace ebb
