#include "replay/execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "models/errors.hpp"
#include "models/quantity_text.hpp"
#include "replay/device_memory.hpp"
#include "replay/run_exchange.hpp"
#include "replay/run_setup.hpp"
#include "replay/timing.hpp"

namespace ebb::replay {

namespace {

RunRanks ranks_of(std::span<const Program> programs, const ExecuteOptions& options) {
  return {.count = programs.size(),
          .rank = [programs](std::size_t i) { return programs[i].plan->rank; },
          .programs = [programs](std::size_t i) { return std::vector<const Program*>{&programs[i]}; },
          .needs =
              [programs, &options](std::size_t i, bool own) {
                RankNeeds need{
                    .rank = programs[i].plan->rank, .pinned = programs[i].pinned, .pageable = programs[i].pageable};
                if (!own) return need;
                need.buffers = device_bytes_needed(programs[i]);
                need.instruments = instruments_needed(programs[i], options);
                return need;
              }};
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

std::size_t repeat_to_show(OwnPart& own, std::span<const Program> programs, std::span<const RankRecord> records) {
  std::vector<std::vector<Ticks>> steps(records.size());
  for (std::size_t r = 0; r < records.size(); ++r) {
    for (const Timeline& repeat : records[r].repeats) steps[r].push_back(summarize(*programs[r].plan, repeat).total);
  }
  std::vector<Ticks> slowest = slowest_of_ranks(steps);
  if (own.processes) slowest = slowest_of_ranks(exchange_steps(*own.processes, slowest));
  return median_index(slowest);
}

}  // namespace

RunResult execute(std::span<const Program> programs, const ExecuteOptions& options) {
  if (programs.empty()) throw InputError({}, "no plan to execute");
  if (options.repeats < 1 || options.warmups < 0)
    throw InputError({}, fmt::format("{} warm-ups and {} repeats", options.warmups, options.repeats),
                     "at least one repeat is timed");
  RunResult result;
  RunSetup setup = set_up(ranks_of(programs, options), options);
  OwnPart& part = setup.part;
  result.remarks = std::move(setup.remarks);
  result.provenance = std::move(setup.provenance);
  const std::span<const Program> own = programs.subspan(part.first, part.devices.size());
  RunShared shared(options, static_cast<int>(own.size()));
  shared.processes = setup.processes();
  shared.ids = std::move(setup.ids);
  const std::vector<RankPlace>& places = setup.places;
  std::vector<RankRecord> records =
      run_threads(own.size(), shared, [&](std::size_t i) { return run_rank(own[i], places[i], shared); });
  const std::size_t shown = repeat_to_show(part, own, records);
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (options.compute) note_stand_ins(*own[r].plan, records[r].repeats[shown], result.remarks);
    result.ranks.push_back(rank_run(own[r], records[r], shown, result.remarks));
    if (records[r].link) add_link(*own[r].plan, result.ranks.back(), *records[r].link, result.provenance);
  }
  if (part.processes) {
    result.first_process = part.processes->rank() == 0;
    result.ranks = gather_runs(*part.processes, std::move(result.ranks[0]));
  }
  return result;
}

}  // namespace ebb::replay
