#include "replay/preflight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "replay/execute.hpp"
#include "replay/run_facts.hpp"

namespace ebb::replay {

namespace {

std::string text(ComputeCapability capability) { return fmt::format("{}.{}", capability.major, capability.minor); }

std::string list(const CompiledFor& compiled) {
  std::string all;
  const auto add = [&all](const std::string& one) { all += (all.empty() ? "" : ", ") + one; };
  for (const ComputeCapability capability : compiled.code) add(text(capability));
  for (const ComputeCapability capability : compiled.ptx) add(text(capability) + " and newer");
  return all.empty() ? "no GPU" : all;
}

std::size_t highest_device(const Needs& needs) {
  std::size_t devices = 0;
  for (const RankNeeds& rank : needs.ranks) devices = std::max(devices, static_cast<std::size_t>(rank.device) + 1);
  return devices;
}

/// What several ranks on one device take together.
struct DeviceNeed {
  Bytes buffers{0};
  Bytes instruments{0};
  std::vector<std::int64_t> ranks;
};

std::map<int, DeviceNeed> by_device(const Needs& needs) {
  std::map<int, DeviceNeed> devices;
  for (const RankNeeds& rank : needs.ranks) {
    DeviceNeed& device = devices[rank.device];
    device.buffers += rank.buffers;
    device.instruments += rank.instruments;
    device.ranks.push_back(rank.rank);
  }
  return devices;
}

void check_device_memory(const Needs& needs, int index, const DeviceNeed& need, const Gpu& gpu) {
  const Bytes wanted = need.buffers + need.instruments + needs.keep_free;
  if (wanted <= gpu.free) return;
  throw InputError(
      {needs.file},
      fmt::format("rank {} needs {} of device memory ({} for the plan, {} for replay's instruments, {} to stay free), "
                  "and device {} ({}) has {} free of {}",
                  fmt::join(need.ranks, ", "), format_bytes(wanted), format_bytes(need.buffers),
                  format_bytes(need.instruments), format_bytes(needs.keep_free), index, gpu.name,
                  format_bytes(gpu.free), format_bytes(gpu.total)),
      wanted <= gpu.total ? "end what else runs on the device, or plan with a smaller budget.device"
                          : "plan with a smaller budget.device");
}

}  // namespace

CompiledFor compiled_for(std::string_view cmake_architectures) {
  CompiledFor compiled;
  while (!cmake_architectures.empty()) {
    const std::size_t end = std::min(cmake_architectures.find_first_of(",;"), cmake_architectures.size());
    const std::string_view one = cmake_architectures.substr(0, end);
    cmake_architectures.remove_prefix(std::min(end + 1, cmake_architectures.size()));
    int number = 0;  // "90", "100", "90a": tens are the major, the last digit is the minor
    const char* digits_end = std::from_chars(one.data(), one.data() + one.size(), number).ptr;
    if (number < 10) continue;
    const ComputeCapability capability{number / 10, number % 10};
    const std::string_view kind(digits_end, static_cast<std::size_t>(one.data() + one.size() - digits_end));
    if (!kind.ends_with("virtual")) compiled.code.push_back(capability);
    if (!kind.ends_with("real")) compiled.ptx.push_back(capability);
  }
  return compiled;
}

// CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility".
bool runs_on(const CompiledFor& compiled, ComputeCapability device) {
  const auto as_code = [&](ComputeCapability c) { return c.major == device.major && c.minor <= device.minor; };
  const auto as_ptx = [&](ComputeCapability c) { return c <= device; };
  return std::any_of(compiled.code.begin(), compiled.code.end(), as_code) ||
         std::any_of(compiled.ptx.begin(), compiled.ptx.end(), as_ptx);
}

void check_devices(const Needs& needs, const Machine& machine, const CompiledFor& compiled) {
  constexpr const char* kInstead = "'--device cpu' runs the reference without a GPU";
  if (machine.driver == 0) {
    throw CudaError(fmt::format("no NVIDIA driver here{}; run where a GPU is ({})",
                                machine.problem.empty() ? "" : fmt::format(" ({})", machine.problem), kInstead));
  }
  // Any driver of a CUDA major version runs all of its minor versions (CUDA Compatibility, minor version
  // compatibility).
  if (machine.driver / 1000 < machine.runtime / 1000) {
    throw CudaError(fmt::format(
        "the NVIDIA driver knows CUDA up to {}, and this was built with CUDA {}; install a newer "
        "driver, or build with CUDA {}",
        cuda_version_text(machine.driver), cuda_version_text(machine.runtime), cuda_version_text(machine.driver)));
  }
  if (!machine.problem.empty()) throw CudaError(fmt::format("CUDA does not work here: {}", machine.problem));
  if (machine.devices.empty())
    throw CudaError(fmt::format("no GPU is visible; see CUDA_VISIBLE_DEVICES ({})", kInstead));
  const std::size_t wanted = highest_device(needs);
  if (wanted > machine.devices.size()) {
    throw InputError({needs.file},
                     fmt::format("{} ranks want devices up to number {}, and {} are visible", needs.ranks.size(),
                                 wanted - 1, machine.devices.size()),
                     "plan for fewer GPUs of a host, or start one process a host with enough of them");
  }
  for (const RankNeeds& rank : needs.ranks) {
    const Gpu& gpu = machine.devices[static_cast<std::size_t>(rank.device)];
    if (runs_on(compiled, gpu.capability)) continue;
    throw CudaError(fmt::format(
        "device {} ({}) has compute capability {}, and this was built for {}; build with "
        "cmake -D CMAKE_CUDA_ARCHITECTURES={}{}",
        rank.device, gpu.name, text(gpu.capability), list(compiled), gpu.capability.major, gpu.capability.minor));
  }
}

std::vector<std::string> check_memory(const Needs& needs, const Machine& machine) {
  for (const auto& [index, need] : by_device(needs)) {
    EBB_ASSERT(index >= 0 && static_cast<std::size_t>(index) < machine.devices.size());
    check_device_memory(needs, index, need, machine.devices[static_cast<std::size_t>(index)]);
  }
  Bytes pinned{0};
  Bytes pageable{0};
  for (const RankNeeds& rank : needs.ranks) {
    pinned += rank.pinned;
    pageable += rank.pageable;
  }
  const HostVerdict verdict = judge_host_memory(pinned, pageable, machine.host);
  if (!verdict.refusal.empty()) throw InputError({needs.file}, verdict.refusal);
  std::vector<std::string> remarks;
  if (!verdict.remark.empty()) remarks.push_back(verdict.remark);
  return remarks;
}

}  // namespace ebb::replay
