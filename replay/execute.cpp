#include "replay/execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "replay/cuda.hpp"
#include "replay/device_memory.hpp"
#include "replay/numa.hpp"
#include "replay/preflight.hpp"
#include "replay/processes.hpp"
#include "replay/rank_thread.hpp"
#include "replay/run_exchange.hpp"
#include "replay/run_facts.hpp"
#include "replay/timing.hpp"

namespace ebb::replay {

namespace {

/// What this process does of a run.
struct OwnPart {
  std::span<const Program> programs;
  std::vector<int> devices;            // of each
  std::optional<Processes> processes;  // where there are others
};

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

/// Alone: all plans, on devices 0, 1, ... Of several processes: the plan and the device of its place on the host, or
/// the only device where the launcher shows each process one.
OwnPart own_part(std::span<const Program> programs, const ExecuteOptions& options) {
  OwnPart own{programs, options.devices, {}};
  if (own.devices.empty()) {
    for (std::size_t i = 0; i < programs.size(); ++i) own.devices.push_back(static_cast<int>(i));
  }
  check_devices_given(own.devices, programs.size());
  const ProcessPlace place = process_place(environment());
  if (place.size == 1) return own;
  if (static_cast<std::size_t>(place.local_size) != programs.size()) {
    throw InputError({}, fmt::format("{} processes on this host for {} plans", place.local_size, programs.size()),
                     "start one process for each plan of the file");
  }
  const auto local = static_cast<std::size_t>(place.local_rank);
  own.programs = programs.subspan(local, 1);
  own.devices = {own.devices[local]};
  if (options.devices.empty() && read_machine(own.devices).devices.size() == 1) own.devices = {0};
  own.processes.emplace(place);
  return own;
}

/// `all`: plans of this host. Other processes pin beside this one.
Needs needs_of(const OwnPart& own, std::span<const Program> all, const ExecuteOptions& options) {
  Needs needs;
  needs.keep_free = options.keep_free;
  for (std::size_t i = 0; i < own.programs.size(); ++i) {
    needs.ranks.push_back({.rank = own.programs[i].plan->rank,
                           .device = own.devices[i],
                           .buffers = device_bytes_needed(own.programs[i]),
                           .instruments = instruments_needed(own.programs[i], options),
                           .pinned = own.programs[i].pinned,
                           .pageable = own.programs[i].pageable});
  }
  for (const Program& program : all) {
    const bool here = std::any_of(own.programs.begin(), own.programs.end(),
                                  [&](const Program& mine) { return mine.plan == program.plan; });
    if (here) continue;
    needs.ranks[0].pinned += program.pinned;
    needs.ranks[0].pageable += program.pageable;
  }
  return needs;
}

/// Of the groups whose ranks are all there, in whichever process.
NcclIds make_ids(OwnPart& own, const ExecuteOptions& options, std::vector<std::string>& remarks) {
  std::vector<std::int64_t> present;
  for (const Program& program : own.programs) present.push_back(program.plan->rank);
  std::sort(present.begin(), present.end());
  const std::vector<std::int64_t> here = present;
  if (own.processes) present = exchange_ranks(*own.processes, present[0]);
  NcclIds ids;
  for (const CommGroup& group : complete_groups(distinct_groups(own.programs), present, options.alone, remarks)) {
    load_nccl();
    if (std::binary_search(here.begin(), here.end(), group.first)) ids.emplace(group, new_nccl_id());
  }
  return own.processes ? exchange_ids(*own.processes, ids) : ids;
}

/// Where each rank runs, and with whom it shares CPUs. Of other processes only the number on this host is known.
std::vector<RankPlace> places_of(const OwnPart& own) {
  std::vector<RankPlace> places(own.devices.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = {own.devices[i], numa_node_of(pci_bus_id(own.devices[i])).value_or(-1), 0, 0};
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t j = 0; j < places.size(); ++j) {
      if (places[j].node != places[i].node) continue;
      places[i].index += j < i ? 1 : 0;
      ++places[i].sharers;
    }
  }
  if (own.processes) {
    const ProcessPlace& process = own.processes->place();
    places[0] = {own.devices[0], -1, static_cast<std::size_t>(process.local_rank),
                 static_cast<std::size_t>(process.local_size)};
  }
  return places;
}

/// Memory that was taken before the run is in the driver's figures too.
void note_other_users(const OwnPart& own, const Machine& machine, std::vector<std::string>& remarks) {
  constexpr Bytes kContext = 2_GiB;  // more than a context takes
  for (const int device : own.devices) {
    const Gpu& gpu = machine.devices[static_cast<std::size_t>(device)];
    const Bytes used = gpu.total - gpu.free;
    if (used <= kContext) continue;
    remarks.push_back(
        fmt::format("device {}: {} were in use before the run (context included); the driver's peak has them too",
                    device, format_bytes(used)));
  }
}

/// One thread a rank; returns when all have ended, throws the first error.
std::vector<RankRecord> run_threads(std::span<const Program> programs, std::span<const RankPlace> places,
                                    RunShared& shared) {
  std::vector<RankRecord> records(programs.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          records[i] = run_rank(programs[i], places[i], shared);
        } catch (const Stopped&) {
        } catch (...) {
          shared.stop(std::current_exception());
        }
      });
    }
  }
  shared.barrier.rethrow();
  return records;
}

/// Stand-ins are made to last as planned; what they lasted tells of copies beside them, or of power limits.
void note_stand_ins(const Plan& plan, const Timeline& timeline, std::vector<std::string>& remarks) {
  double planned = 0;
  double measured = 0;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].kind != OpKind::compute) continue;
    planned += to_seconds(plan.ops[i].duration).value;
    measured += to_seconds(timeline.end[i] - timeline.start[i]).value;
  }
  constexpr double kWorthSaying = 0.01;
  if (planned <= 0 || std::abs(measured / planned - 1) <= kWorthSaying) return;
  remarks.push_back(fmt::format("rank {}: forward and backward took {:.3f} ms instead of {:.3f} ms ({:+.1f} %)",
                                plan.rank, measured * 1e3, planned * 1e3, (measured / planned - 1) * 100));
}

RankRun rank_run(const Program& program, RankRecord& record, std::size_t shown, std::vector<std::string>& remarks) {
  RankRun run;
  run.timeline = rank_timeline(*program.plan, record.repeats[shown]);
  run.timeline.steps.clear();
  run.timeline.updates.clear();
  for (const Timeline& repeat : record.repeats) {
    const StepSummary summary = summarize(*program.plan, repeat);
    run.timeline.steps.push_back(summary.total);
    run.timeline.updates.push_back(update_of(summary));
  }
  MemoryFigures& memory = run.timeline.memory;
  memory.torch_allocated_peak = record.memory.torch_allocated_peak;
  memory.torch_reserved_peak = record.memory.torch_reserved_peak;
  memory.driver_peak = record.memory.driver_peak;
  memory.instruments = record.memory.instruments;
  run.numbers = std::move(record.numbers);
  memory.live_peak = run.numbers.peak_live;  // as allocated and released, not as planned
  memory.live_by_phase = record.memory.live_by_phase;
  memory.pinned = record.memory.pinned;
  memory.pageable = record.memory.pageable;
  remarks.insert(remarks.end(), record.remarks.begin(), record.remarks.end());
  return run;
}

/// The step of packed slots against what the link carried in this run.
void add_link(const Plan& plan, const RankRun& run, const LinkReference& link,
              std::vector<std::pair<std::string, std::string>>& facts) {
  Bytes bytes{0};
  Ticks first{std::numeric_limits<std::int64_t>::max()};
  Ticks last{0};
  for (const OpSpan& op : run.timeline.ops) {
    if (op.phase != Phase::step || (op.kind != OpKind::copy_h2d && op.kind != OpKind::copy_d2h)) continue;
    bytes += op.bytes;
    first = std::min(first, op.start);
    last = std::max(last, op.end);
  }
  if (last <= first) return;
  const double rate = static_cast<double>(bytes.value) / to_seconds(last - first).value;
  facts.emplace_back(
      fmt::format("link of rank {}", plan.rank),
      fmt::format("copies of {} each way at once reach {:.2f} GB/s in this run; the optimizer step's "
                  "reached {:.2f} GB/s, {:.1f} % of it",
                  format_bytes(link.copy), link.rate.value / 1e9, rate / 1e9, 100 * rate / link.rate.value));
}

std::size_t repeat_to_show(OwnPart& own, std::span<const RankRecord> records) {
  std::vector<std::vector<Ticks>> steps(records.size());
  for (std::size_t r = 0; r < records.size(); ++r) {
    for (const Timeline& repeat : records[r].repeats)
      steps[r].push_back(summarize(*own.programs[r].plan, repeat).total);
  }
  std::vector<Ticks> slowest = slowest_of_ranks(steps);
  if (own.processes) slowest = slowest_of_ranks(exchange_steps(*own.processes, slowest));
  return median_index(slowest);
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

}  // namespace

RunResult execute(std::span<const Program> programs, const ExecuteOptions& options) {
  if (programs.empty()) throw InputError({}, "no plan to execute");
  if (options.repeats < 1 || options.warmups < 0)
    throw InputError({}, fmt::format("{} warm-ups and {} repeats", options.warmups, options.repeats),
                     "at least one repeat is timed");
  RunResult result;
  OwnPart own = own_part(programs, options);
  const Needs needs = needs_of(own, programs, options);
  const Machine machine = read_machine(own.devices);
  check_devices(needs, machine, compiled_for());
  result.remarks = check_memory(needs, machine);
  note_other_users(own, machine, result.remarks);

  RunShared shared(options, static_cast<int>(own.programs.size()));
  shared.processes = own.processes ? &*own.processes : nullptr;
  shared.ids = make_ids(own, options, result.remarks);
  result.provenance = provenance(machine, own.devices, !shared.ids.empty());

  std::vector<RankRecord> records = run_threads(own.programs, places_of(own), shared);
  const std::size_t shown = repeat_to_show(own, records);
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (options.compute) note_stand_ins(*own.programs[r].plan, records[r].repeats[shown], result.remarks);
    result.ranks.push_back(rank_run(own.programs[r], records[r], shown, result.remarks));
    if (records[r].link) add_link(*own.programs[r].plan, result.ranks.back(), *records[r].link, result.provenance);
  }
  if (own.processes) {
    result.first_process = own.processes->rank() == 0;
    result.ranks = gather_runs(*own.processes, std::move(result.ranks[0]));
  }
  return result;
}

}  // namespace ebb::replay
