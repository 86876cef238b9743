#include "replay/run_setup.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "replay/cuda.hpp"
#include "replay/numa.hpp"
#include "replay/run_exchange.hpp"
#include "replay/run_facts.hpp"

namespace ebb::replay {

namespace {

void check_devices_given(std::span<const int> devices, std::size_t plans) {
  if (devices.size() != plans) {
    throw InputError({}, fmt::format("{} devices for {} plans", devices.size(), plans),
                     "name one device for each plan of the file, in the order of ranks");
  }
  std::vector<int> sorted(devices.begin(), devices.end());
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw InputError({}, "a device is named twice", "give each rank a GPU of its own");
}

}  // namespace

OwnPart own_part(std::size_t plans, const ExecuteOptions& options) {
  OwnPart own{0, options.devices, {}};
  if (own.devices.empty()) {
    for (std::size_t i = 0; i < plans; ++i) own.devices.push_back(static_cast<int>(i));
  }
  check_devices_given(own.devices, plans);
  const ProcessPlace place = process_place(environment());
  if (place.size == 1) return own;
  if (static_cast<std::size_t>(place.local_size) != plans) {
    throw InputError({}, fmt::format("{} processes on this host for {} plans", place.local_size, plans),
                     "start one process for each plan of the file");
  }
  own.first = static_cast<std::size_t>(place.local_rank);
  own.devices = {own.devices[own.first]};
  if (options.devices.empty() && read_machine(own.devices).devices.size() == 1) own.devices = {0};
  own.processes.emplace(place);
  return own;
}

std::vector<std::int64_t> ranks_present(OwnPart& part, std::vector<std::int64_t> own) {
  std::sort(own.begin(), own.end());
  return part.processes ? exchange_ranks(*part.processes, own[0]) : own;
}

NcclIds make_ids(OwnPart& part, std::span<const Program* const> programs, std::span<const std::int64_t> own,
                 std::span<const std::int64_t> present, bool alone, std::vector<std::string>& remarks) {
  NcclIds ids;
  for (const CommGroup& group : complete_groups(distinct_groups(programs), present, alone, remarks)) {
    load_nccl();
    if (std::find(own.begin(), own.end(), group.first) != own.end()) ids.emplace(group, new_nccl_id());
  }
  return part.processes ? exchange_ids(*part.processes, ids) : ids;
}

/// Where each rank runs, and with whom it shares CPUs. Of other processes only the number on this host is knpart.
std::vector<RankPlace> places_of(const OwnPart& part) {
  std::vector<RankPlace> places(part.devices.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = {part.devices[i], numa_node_of(pci_bus_id(part.devices[i])).value_or(-1), 0, 0};
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t j = 0; j < places.size(); ++j) {
      if (places[j].node != places[i].node) continue;
      places[i].index += j < i ? 1 : 0;
      ++places[i].sharers;
    }
  }
  if (part.processes) {
    const ProcessPlace& process = part.processes->place();
    places[0] = {part.devices[0], -1, static_cast<std::size_t>(process.local_rank),
                 static_cast<std::size_t>(process.local_size)};
  }
  return places;
}

void note_other_users(const OwnPart& part, const Machine& machine, std::vector<std::string>& remarks) {
  constexpr Bytes kContext = 2_GiB;  // more than a context takes
  for (const int device : part.devices) {
    const Gpu& gpu = machine.devices[static_cast<std::size_t>(device)];
    const Bytes used = gpu.total - gpu.free;
    if (used <= kContext) continue;
    remarks.push_back(
        fmt::format("device {}: {} were in use before the run (context included); the driver's peak has them too",
                    device, format_bytes(used)));
  }
}

std::vector<std::pair<std::string, std::string>> provenance(const Machine& machine, std::span<const int> devices,
                                                            bool nccl) {
  std::vector<std::pair<std::string, std::string>> facts;
  for (const int device : devices) {
    facts.emplace_back(fmt::format("device {}", device), machine.devices[static_cast<std::size_t>(device)].name);
  }
  if (const std::string driver = driver_name(); !driver.empty()) facts.emplace_back("driver", driver);
  facts.emplace_back("driver supports CUDA", cuda_version_text(machine.driver));
  facts.emplace_back("CUDA runtime", cuda_version_text(machine.runtime));
  if (nccl) facts.emplace_back("NCCL", nccl_version());
  return facts;
}

}  // namespace ebb::replay
