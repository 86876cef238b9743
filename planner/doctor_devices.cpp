// What a host's driver, its GPUs and their links mean for the plan's figures.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "models/quantity_text.hpp"
#include "planner/doctor_parts.hpp"

namespace ebb::doctor {

namespace {

/// The newest CUDA major version that a driver runs. Source: NVIDIA, "CUDA Compatibility", minor version compatibility
/// (11.x from 450, 12.x from 525, 13.x from 580 on).
int cuda_of(const std::string& driver) {
  int branch = 0;
  std::from_chars(driver.data(), driver.data() + driver.size(), branch);
  return branch >= 580 ? 13 : branch >= 525 ? 12 : branch >= 450 ? 11 : 0;
}

}  // namespace

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

namespace {

std::string names_of(const std::vector<GpuFacts>& gpus) {
  std::vector<std::string> names;
  for (const GpuFacts& gpu : gpus)
    if (!gpu.name.empty() && std::find(names.begin(), names.end(), gpu.name) == names.end()) names.push_back(gpu.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

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
    found.verdict = Verdict::problem;
    found.consequence = fmt::format("the plan's memory and times are those of {}", need->gpu);
    found.cure = "name the right cluster, or measure one: ebb-replay calibrate";
  }
  return found;
}

namespace {

std::string text_of(const PcieLink& link) {
  return fmt::format("PCIe {:g} GT/s x{} ({} each way)", link.gigatransfers, link.width, format_bandwidth(link.rate()));
}

}  // namespace

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

}  // namespace ebb::doctor
