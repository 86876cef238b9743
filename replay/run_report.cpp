#include "replay/run_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/errors.hpp"
#include "models/json_fields.hpp"
#include "models/quantity_text.hpp"
#include "replay/memory_json.hpp"
#include "reports/answer_head.hpp"
#include "reports/table.hpp"

namespace ebb::replay {

Spread spread_of(std::span<const Ticks> times) {
  EBB_ASSERT(!times.empty());
  std::vector<Ticks> sorted(times.begin(), times.end());
  std::sort(sorted.begin(), sorted.end());
  return {sorted[sorted.size() / 2], sorted.front(), sorted.back()};
}

LinkRates link_rates(const RankTimeline& timeline) {
  const auto rate = [&](bool in, bool out) -> BytesPerSecond {
    std::vector<std::pair<Ticks, Ticks>> spans;
    Bytes bytes{0};
    for (const OpSpan& op : timeline.ops) {
      if (op.phase != Phase::step) continue;
      if (!((in && op.kind == OpKind::copy_h2d) || (out && op.kind == OpKind::copy_d2h))) continue;
      spans.emplace_back(op.start, op.end);
      bytes += op.bytes;
    }
    std::sort(spans.begin(), spans.end());
    Ticks busy{0};
    Ticks behind{0};
    for (const auto& [start, end] : spans) {
      busy += std::max(end - std::max(start, behind), Ticks{0});
      behind = std::max(behind, end);
    }
    return {busy.value > 0 ? static_cast<double>(bytes.value) / to_seconds(busy).value : 0};
  };
  return {rate(true, false), rate(false, true), rate(true, true)};
}

namespace {

std::string line_of(const char* name, std::span<const Ticks> times) {
  const Spread spread = spread_of(times);
  return fmt::format("  {:<16}{}   ({} repeats: {} to {})\n", name, format_seconds(to_seconds(spread.median)),
                     times.size(), format_seconds(to_seconds(spread.least)), format_seconds(to_seconds(spread.most)));
}

std::string rates_text(const LinkRates& rates) {
  if (rates.together.value == 0) return "";
  std::string text = "  copies in step  ";
  if (rates.h2d.value > 0) text += fmt::format("to device {}, ", format_bandwidth(rates.h2d));
  if (rates.d2h.value > 0) text += fmt::format("to host {}, ", format_bandwidth(rates.d2h));
  return text + fmt::format("together {}\n", format_bandwidth(rates.together));
}

std::string memory_text(const MemoryFigures& memory) {
  std::string text = fmt::format("  peak            {} live", format_bytes(memory.live_peak));
  const auto add = [&](const std::optional<Bytes>& bytes, const char* what) {
    if (bytes) text += fmt::format(", {} {}", format_bytes(*bytes), what);
  };
  add(memory.torch_allocated_peak, "allocated (torch)");
  add(memory.torch_reserved_peak, "reserved (torch)");
  add(memory.driver_peak, "used (driver)");
  add(memory.instruments, "of it instruments");
  text += "\n";
  for (const auto& [phase, bytes] : memory.live_by_phase)
    text += fmt::format("    {:<14}{}\n", name_of(phase), format_bytes(bytes));
  if (memory.pinned.value > 0 || memory.pageable.value > 0)
    text += fmt::format("  host            {} pinned, {} pageable\n", format_bytes(memory.pinned),
                        format_bytes(memory.pageable));
  return text;
}

Json spread_json(std::span<const Ticks> times) {
  const Spread spread = spread_of(times);
  return {{"median_s", to_seconds(spread.median).value},
          {"least_s", to_seconds(spread.least).value},
          {"most_s", to_seconds(spread.most).value},
          {"repeats", times.size()}};
}

Json numbers_of(const RankNumbers& numbers) {
  Json steps = Json::array();
  for (const StepNumbers& step : numbers.steps)
    steps.push_back({{"loss", step.loss},
                     {"sum_of_squares", step.sum_of_squares},
                     {"digest", fmt::format("{:016x}", step.digest)}});
  return {{"steps", steps}, {"final_state", fmt::format("{:016x}", numbers.final_state)}};
}

std::string steps_text(const RankNumbers& numbers) {
  reports::Table table({{"  step"}, {"loss"}, {"gradient norm"}, {"state digest"}});
  for (std::size_t t = 0; t < numbers.steps.size(); ++t) {
    const StepNumbers& step = numbers.steps[t];
    table.add_row({fmt::format("{}", t + 1), fmt::format("{:.6f}", step.loss),
                   fmt::format("{:.6f}", std::sqrt(static_cast<double>(step.sum_of_squares))),
                   step.digest == 0 ? "-" : fmt::format("{:016x}", step.digest)});
  }
  std::string text;
  for (const std::string& line : table.lines()) text += line + "\n";
  return text + fmt::format("  final state {:016x}\n", numbers.final_state);
}

}  // namespace

Json memory_json(const MemoryFigures& memory) {
  Json json = {{"live_peak", memory.live_peak.value}};
  for (const auto& [phase, bytes] : memory.live_by_phase)
    json["live_by_phase"][std::string(name_of(phase))] = bytes.value;
  const auto add = [&](const char* key, const std::optional<Bytes>& bytes) {
    if (bytes) json[key] = bytes->value;
  };
  add("torch_allocated_peak", memory.torch_allocated_peak);
  add("torch_reserved_peak", memory.torch_reserved_peak);
  add("driver_peak", memory.driver_peak);
  add("instruments", memory.instruments);
  json["pinned"] = memory.pinned.value;
  json["pageable"] = memory.pageable.value;
  return json;
}

std::string to_text(const RunResult& run) {
  std::string text;
  for (const RankRun& rank : run.ranks) {
    text += fmt::format("rank {}\n", rank.timeline.rank);
    text += line_of("step", rank.timeline.steps);
    text += line_of("optimizer step", rank.timeline.updates);
    text += rates_text(link_rates(rank.timeline));
    text += memory_text(rank.timeline.memory);
    text += steps_text(rank.numbers) + "\n";
  }
  for (const auto& [what, value] : run.provenance) text += fmt::format("{}: {}\n", what, value);
  for (const std::string& remark : run.remarks) text += fmt::format("note: {}\n", remark);
  return text;
}

std::string to_json(const RunResult& run) {
  Json json = reports::answer_head("run");
  json["ranks"] = Json::array();
  for (const RankRun& rank : run.ranks) {
    const LinkRates rates = link_rates(rank.timeline);
    json["ranks"].push_back({{"rank", rank.timeline.rank},
                             {"step", spread_json(rank.timeline.steps)},
                             {"optimizer_step", spread_json(rank.timeline.updates)},
                             {"copies_in_step",
                              {{"h2d_bytes_per_s", rates.h2d.value},
                               {"d2h_bytes_per_s", rates.d2h.value},
                               {"together_bytes_per_s", rates.together.value}}},
                             {"memory", memory_json(rank.timeline.memory)},
                             {"numbers", numbers_of(rank.numbers)}});
  }
  json["provenance"] = Json::object();
  for (const auto& [what, value] : run.provenance) json["provenance"][what] = value;
  json["remarks"] = run.remarks;
  return dump(json) + "\n";
}

std::string numbers_text(std::span<const RankNumbers> ranks, std::span<const Program> programs) {
  std::string text;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    text += fmt::format("rank {}, on the CPU: numbers, no times\n", programs[r].plan->rank);
    text += fmt::format("  peak {} live\n", format_bytes(ranks[r].peak_live));
    if (ranks[r].strays > 0)
      text += fmt::format("  {} accesses to memory that was not allocated then\n", ranks[r].strays);
    text += steps_text(ranks[r]);
  }
  return text;
}

std::string numbers_json(std::span<const RankNumbers> ranks, std::span<const Program> programs) {
  Json json = reports::answer_head("run-numbers");
  json["ranks"] = Json::array();
  for (std::size_t r = 0; r < ranks.size(); ++r)
    json["ranks"].push_back({{"rank", programs[r].plan->rank},
                             {"live_peak", ranks[r].peak_live.value},
                             {"strays", ranks[r].strays},
                             {"numbers", numbers_of(ranks[r])}});
  return dump(json) + "\n";
}

}  // namespace ebb::replay
