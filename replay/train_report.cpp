#include "replay/train_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/quantity_text.hpp"
#include "replay/memory_json.hpp"
#include "reports/answer_head.hpp"
#include "reports/table.hpp"

namespace ebb::replay {

std::vector<CheckpointTotal> checkpoint_totals(std::span<const LifeNumbers> ranks) {
  std::vector<CheckpointTotal> totals;
  for (const LifeNumbers& rank : ranks) {
    totals.resize(std::max(totals.size(), rank.checkpoints.size()));
    for (std::size_t k = 0; k < rank.checkpoints.size(); ++k) {
      const CheckpointFigures& of_rank = rank.checkpoints[k];
      CheckpointTotal& total = totals[k];
      total.saved = of_rank.saved;
      total.directory = of_rank.directory;
      total.bytes += of_rank.bytes;
      total.seconds = std::max(total.seconds, Seconds{of_rank.seconds});
      total.storage_seconds = std::max(total.storage_seconds, Seconds{of_rank.storage_seconds});
    }
  }
  return totals;
}

namespace {

std::string begin_text(const TrainScript& script) {
  if (script.from.empty()) return "from init\n";
  if (script.done) return fmt::format("{} has all steps behind it: there is nothing to do\n", script.from);
  return fmt::format("from {}{}\n", script.parameters ? "the parameters of " : "", script.from);
}

void add(std::string& text, const reports::Table& table) {
  for (const std::string& line : table.lines()) text += line + "\n";
}

std::string rank_text(const TrainResult& result, std::size_t r) {
  const LifeNumbers& numbers = result.run.ranks[r];
  reports::Table steps({{"  step"}, {"loss"}, {"gradient norm"}, {"loss scale"}, {"state digest"}});
  for (std::size_t i = 0; i < numbers.steps.size(); ++i) {
    const StepNumbers& step = numbers.steps[i];
    steps.add_row({fmt::format("{}", result.script.first + static_cast<int>(i) + 1), fmt::format("{:.6f}", step.loss),
                   fmt::format("{:.6f}", std::sqrt(static_cast<double>(step.sum_of_squares))),
                   fmt::format("{}", static_cast<double>(step.loss_scale)),
                   step.skipped ? "skipped" : fmt::format("{:016x}", step.digest)});
  }
  reports::Table peaks({{"  part", reports::Align::left}, {"live"}, {"planned"}});
  std::vector<PartPeak> shown;  // each part once, at its highest
  for (const PartPeak& peak : numbers.peaks) {
    const auto known = std::find_if(shown.begin(), shown.end(), [&](const PartPeak& p) { return p.part == peak.part; });
    if (known == shown.end()) {
      shown.push_back(peak);
    } else if (known->live < peak.live) {
      *known = peak;
    }
  }
  for (const PartPeak& peak : shown)
    peaks.add_row({fmt::format("  {}", name_of(peak.part)), format_bytes(peak.live), format_bytes(peak.planned)});
  std::string text = fmt::format("rank {}{}\n", result.ranks[r], result.on_gpu ? "" : ", on the CPU");
  if (numbers.strays > 0) text += fmt::format("  {} accesses to memory that was not allocated then\n", numbers.strays);
  add(text, steps);
  add(text, peaks);
  if (numbers.memory.driver_peak)
    text += fmt::format("  peak used (driver) {}\n", format_bytes(*numbers.memory.driver_peak));
  return text + fmt::format("  final state {:016x}\n\n", numbers.final_state);
}

/// Of the save that plain writes were measured beside: the last one.
std::optional<double> share_of_plain_writes(const TrainResult& result, std::span<const CheckpointTotal> totals) {
  const auto last = std::find_if(totals.rbegin(), totals.rend(), [](const auto& total) { return total.saved; });
  if (!result.storage || last == totals.rend() || result.storage->mean().value <= 0) return std::nullopt;
  return last->rate().value / result.storage->mean().value;
}

std::string storage_text(const TrainResult& result, std::span<const CheckpointTotal> totals) {
  const std::optional<double> share = share_of_plain_writes(result, totals);
  if (!share || result.storage->rates().size() != 2) return "";
  const StorageRate& before = result.storage->rates()[0];
  const StorageRate& after = result.storage->rates()[1];
  return fmt::format(
      "plain large writes of {} there{}: {} before the last save, {} after it; the save at {} reached {:.1f} % of "
      "their "
      "mean\n",
      format_bytes(before.bytes), before.direct ? " (O_DIRECT)" : "", format_bandwidth(before.rate()),
      format_bandwidth(after.rate()), format_bandwidth({*share * result.storage->mean().value}), 100.0 * *share);
}

std::string totals_text(const TrainResult& result) {
  const std::vector<CheckpointTotal> totals = checkpoint_totals(result.run.ranks);
  if (totals.empty()) return "";
  reports::Table table({{"checkpoint", reports::Align::left}, {"bytes"}, {"time"}, {"rate"}, {"files alone"}});
  for (const CheckpointTotal& total : totals)
    table.add_row({fmt::format("{} {}", total.saved ? "saved to" : "loaded from", total.directory),
                   format_bytes(total.bytes), format_seconds(total.seconds), format_bandwidth(total.rate()),
                   format_seconds(total.storage_seconds)});
  std::string text;
  add(text, table);
  return text + storage_text(result, totals) + "\n";
}

/// JSON has no inf and no nan.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json rank_json(const TrainResult& result, std::size_t r) {
  const LifeNumbers& numbers = result.run.ranks[r];
  Json json = {{"rank", result.ranks[r]}, {"steps", Json::array()}};
  for (std::size_t i = 0; i < numbers.steps.size(); ++i) {
    const StepNumbers& step = numbers.steps[i];
    json["steps"].push_back({{"step", result.script.first + static_cast<int>(i) + 1},
                             {"loss", finite(step.loss)},
                             {"norm", finite(std::sqrt(static_cast<double>(step.sum_of_squares)))},
                             {"sum_of_squares", finite(step.sum_of_squares)},
                             {"skipped", step.skipped},
                             {"loss_scale", step.loss_scale},
                             {"digest", fmt::format("{:016x}", step.digest)}});
  }
  const TrainingPlace& place = numbers.place;
  json["place"] = {{"steps", place.steps},
                   {"adam_steps", place.adam_steps},
                   {"seed", fmt::format("{:016x}", place.seed)},
                   {"loss_scale", place.loss_scale}};
  json["final_state"] = fmt::format("{:016x}", numbers.final_state);
  json["parameters"] = fmt::format("{:016x}", numbers.parameters);
  json["strays"] = numbers.strays;
  json["peaks"] = Json::array();
  for (const PartPeak& peak : numbers.peaks)
    json["peaks"].push_back({{"part", name_of(peak.part)}, {"live", peak.live.value}, {"planned", peak.planned.value}});
  if (result.on_gpu) json["memory"] = memory_json(numbers.memory);
  return json;
}

}  // namespace

std::string to_text(const TrainResult& result) {
  std::string text = begin_text(result.script);
  for (std::size_t r = 0; r < result.run.ranks.size(); ++r) text += rank_text(result, r);
  text += totals_text(result);
  for (const auto& [what, value] : result.run.provenance) text += fmt::format("{}: {}\n", what, value);
  for (const std::string& remark : result.run.remarks) text += fmt::format("note: {}\n", remark);
  return text;
}

std::string to_json(const TrainResult& result) {
  Json json = reports::answer_head("train");
  json.update({{"from", result.script.from.empty() ? Json() : Json(result.script.from)},
               {"parameters_only", result.script.parameters},
               {"first", result.script.first},
               {"saves", result.script.saves},
               {"ranks", Json::array()},
               {"checkpoints", Json::array()}});
  for (std::size_t r = 0; r < result.run.ranks.size(); ++r) json["ranks"].push_back(rank_json(result, r));
  for (const CheckpointTotal& total : checkpoint_totals(result.run.ranks))
    json["checkpoints"].push_back({{"saved", total.saved},
                                   {"directory", total.directory},
                                   {"bytes", total.bytes.value},
                                   {"seconds", total.seconds.value},
                                   {"storage_seconds", total.storage_seconds.value},
                                   {"bytes_per_s", total.rate().value}});
  if (const auto share = share_of_plain_writes(result, checkpoint_totals(result.run.ranks))) {
    for (const StorageRate& rate : result.storage->rates())
      json["storage"]["plain_writes"].push_back({{"bytes", rate.bytes.value},
                                                 {"seconds", rate.seconds.value},
                                                 {"direct", rate.direct},
                                                 {"bytes_per_s", rate.rate().value}});
    json["storage"]["mean_bytes_per_s"] = result.storage->mean().value;
    json["storage"]["share_of_save"] = *share;
  }
  json["provenance"] = Json::object();
  for (const auto& [what, value] : result.run.provenance) json["provenance"][what] = value;
  json["remarks"] = result.run.remarks;
  return dump(json) + "\n";
}

}  // namespace ebb::replay
