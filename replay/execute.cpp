#include "replay/execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "models/errors.hpp"
#include "replay/cuda.hpp"
#include "replay/device_memory.hpp"
#include "replay/preflight.hpp"
#include "replay/rank_thread.hpp"
#include "replay/timing.hpp"

namespace ebb::replay {

namespace {

std::vector<int> devices_of(std::span<const Program> programs, const ExecuteOptions& options) {
  std::vector<int> devices = options.devices;
  if (devices.empty()) {
    for (std::size_t i = 0; i < programs.size(); ++i) devices.push_back(static_cast<int>(i));
  }
  if (devices.size() != programs.size()) {
    throw InputError({}, fmt::format("{} devices for {} plans", devices.size(), programs.size()),
                     "name one device for each plan of the file, in the order of ranks");
  }
  std::vector<int> sorted = devices;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw InputError({}, "a device is named twice", "give each rank a GPU of its own");
  return devices;
}

Needs needs_of(std::span<const Program> programs, std::span<const int> devices, const ExecuteOptions& options) {
  Needs needs;
  needs.keep_free = options.keep_free;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    needs.ranks.push_back({.rank = programs[i].plan->rank,
                           .device = devices[i],
                           .buffers = device_bytes_needed(programs[i]),
                           .instruments = instruments_needed(programs[i], options),
                           .pinned = programs[i].pinned,
                           .pageable = programs[i].pageable});
  }
  return needs;
}

NcclIds make_ids(std::span<const Program> programs, const ExecuteOptions& options, std::vector<std::string>& remarks) {
  std::vector<std::int64_t> present;
  for (const Program& program : programs) present.push_back(program.plan->rank);
  std::sort(present.begin(), present.end());
  NcclIds ids;
  for (const CommGroup& group : complete_groups(distinct_groups(programs), present, options.alone, remarks)) {
    if (ids.empty()) load_nccl();
    ids.emplace(group, new_nccl_id());
  }
  return ids;
}

/// One thread a rank; returns when all have ended, throws the first error.
std::vector<RankRecord> run_threads(std::span<const Program> programs, std::span<const int> devices,
                                    RunShared& shared) {
  std::vector<RankRecord> records(programs.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          records[i] = run_rank(programs[i], {devices[i], i, programs.size()}, shared);
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
  if (run.numbers.peak_live != memory.live_peak) {
    remarks.push_back(fmt::format("rank {}: {} bytes were live at the peak by the order of issue, {} by measured times",
                                  program.plan->rank, run.numbers.peak_live.value, memory.live_peak.value));
  }
  remarks.insert(remarks.end(), record.remarks.begin(), record.remarks.end());
  return run;
}

std::size_t repeat_to_show(std::span<const Program> programs, std::span<const RankRecord> records) {
  std::vector<std::vector<Ticks>> steps(records.size());
  for (std::size_t r = 0; r < records.size(); ++r) {
    for (const Timeline& repeat : records[r].repeats) steps[r].push_back(summarize(*programs[r].plan, repeat).total);
  }
  return median_index(slowest_of_ranks(steps));
}

std::vector<std::pair<std::string, std::string>> provenance(const Machine& machine, std::span<const int> devices,
                                                            bool nccl) {
  std::vector<std::pair<std::string, std::string>> facts;
  for (const int device : devices) {
    facts.emplace_back(fmt::format("device {}", device), machine.devices[static_cast<std::size_t>(device)].name);
  }
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
  const std::vector<int> devices = devices_of(programs, options);
  const Needs needs = needs_of(programs, devices, options);
  const Machine machine = read_machine(devices);
  check_devices(needs, machine, compiled_for());
  result.remarks = check_memory(needs, machine);

  RunShared shared(options, static_cast<int>(programs.size()));
  shared.ids = make_ids(programs, options, result.remarks);
  result.provenance = provenance(machine, devices, !shared.ids.empty());

  std::vector<RankRecord> records = run_threads(programs, devices, shared);
  const std::size_t shown = repeat_to_show(programs, records);
  for (std::size_t r = 0; r < records.size(); ++r) {
    result.ranks.push_back(rank_run(programs[r], records[r], shown, result.remarks));
  }
  return result;
}

}  // namespace ebb::replay
