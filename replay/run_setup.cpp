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

/// Alone: all of `plans`, on devices 0, 1, ... Of several processes: the plan and the device of its place on the host,
/// or the only device where the launcher shows each process one.
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

/// Global ranks of all processes, ascending. `own`: of this one.
std::vector<std::int64_t> ranks_present(OwnPart& part, std::vector<std::int64_t> own) {
  std::sort(own.begin(), own.end());
  return part.processes ? exchange_ranks(*part.processes, own[0]) : own;
}

/// Of the groups of `programs` (this process's, of all its ranks `own`) whose ranks are all there.
NcclIds make_ids(OwnPart& part, std::span<const Program* const> programs, std::span<const std::int64_t> own,
                 std::span<const std::int64_t> present, bool alone, std::vector<std::string>& remarks) {
  NcclIds ids;
  for (const CommGroup& group : complete_groups(distinct_groups(programs), present, alone, remarks)) {
    load_nccl();
    if (std::find(own.begin(), own.end(), group.first) != own.end()) ids.emplace(group, new_nccl_id());
  }
  return part.processes ? exchange_ids(*part.processes, ids) : ids;
}

/// Where each rank runs, and with whom it shares CPUs. Of other processes only the number on this host is known.
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

/// Memory that was taken before the run is in the driver's figures too.
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

Needs needs_of(const OwnPart& own, const RunRanks& ranks, const ExecuteOptions& options) {
  Needs needs;
  needs.keep_free = options.keep_free;
  Bytes pinned{0};
  Bytes pageable{0};
  for (std::size_t i = 0; i < ranks.count; ++i) {
    const bool here = i >= own.first && i < own.first + own.devices.size();
    RankNeeds need = ranks.needs(i, here);
    if (here) {
      need.device = own.devices[i - own.first];
      needs.ranks.push_back(need);
    } else {
      pinned += need.pinned;
      pageable += need.pageable;
    }
  }
  needs.ranks[0].pinned += pinned;
  needs.ranks[0].pageable += pageable;
  return needs;
}

}  // namespace

RunSetup set_up(const RunRanks& ranks, const ExecuteOptions& options) {
  RunSetup setup;
  setup.part = own_part(ranks.count, options);
  const Needs needs = needs_of(setup.part, ranks, options);
  setup.machine = read_machine(setup.part.devices);
  check_devices(needs, setup.machine, compiled_for());
  setup.remarks = check_memory(needs, setup.machine);
  note_other_users(setup.part, setup.machine, setup.remarks);
  std::vector<const Program*> programs;
  std::vector<std::int64_t> own;
  for (std::size_t i = setup.part.first; i < setup.part.first + setup.part.devices.size(); ++i) {
    const std::vector<const Program*> of_rank = ranks.programs(i);
    programs.insert(programs.end(), of_rank.begin(), of_rank.end());
    own.push_back(ranks.rank(i));
  }
  setup.present = ranks_present(setup.part, own);
  setup.ids = make_ids(setup.part, programs, own, setup.present, options.alone, setup.remarks);
  setup.provenance = provenance(setup.machine, setup.part.devices, !setup.ids.empty());
  setup.places = places_of(setup.part);
  return setup;
}

}  // namespace ebb::replay
