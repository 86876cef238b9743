// What a host's memory, its limits and its nodes mean for what the plan needs of it (host_demand.hpp).
#include <fmt/format.h>

#include <map>

#include "models/quantity_text.hpp"
#include "planner/doctor_parts.hpp"

namespace ebb::doctor {

namespace {

bool is_virtual(const HostFacts& facts) { return facts.limits.virtual_machine; }

Bytes wanted(const HostNeed& need) { return need.pinned + need.pageable; }

std::string wanted_text(const HostNeed& need) {
  return fmt::format("the plan needs {} ({} pinned)", format_bytes(wanted(need)), format_bytes(need.pinned));
}

}  // namespace

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
    found.verdict = Verdict::problem;
    if (is_virtual(facts) && !facts.wsl)
      found.consequence += "; a virtual machine may be given more while it is used, nothing promises it";
    found.cure = "use a host with more memory, or offload less (ebb plan --host-budget)";
  } else if (limits.available && wanted(*need) > *limits.available) {
    found.verdict = Verdict::problem;
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

namespace {

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

}  // namespace

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

}  // namespace ebb::doctor
