#include "reports/plan_times.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/quantity_text.hpp"
#include "reports/answer_head.hpp"
#include "reports/answer_text_parts.hpp"

namespace ebb::reports {

std::string to_text(const PlanTimes& report, const Style& style) {
  std::string text = style.bold(fmt::format("{} ({}) on {}", report.job, report.plan_file, report.cluster)) + "\n\n";
  Table table({{"rank"}, {"step"}, {"optimizer"}, {"live peak"}, {"pinned"}, {"pageable"}});
  for (const RankTimes& rank : report.ranks)
    table.add_row({fmt::format("{}", rank.rank), format_seconds(rank.step), format_seconds(rank.optimizer_step),
                   format_bytes(rank.live_peak), format_bytes(rank.pinned), format_bytes(rank.pageable)});
  append_table(text, table, style);
  return text;
}

std::string to_json(const PlanTimes& report) {
  using Json = nlohmann::ordered_json;
  Json json = answer_head("plan-times");
  json["job"] = report.job;
  json["plan_file"] = report.plan_file;
  json["cluster"] = report.cluster;
  json["ranks"] = Json::array();
  for (const RankTimes& rank : report.ranks)
    json["ranks"].push_back({{"rank", rank.rank},
                             {"step_seconds", rank.step.value},
                             {"optimizer_step_seconds", rank.optimizer_step.value},
                             {"live_peak_bytes", rank.live_peak.value},
                             {"pinned_bytes", rank.pinned.value},
                             {"pageable_bytes", rank.pageable.value}});
  json["ebb_version"] = report.ebb_version;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_text(const LifeTimes& report, const Style& style) {
  std::string text = style.bold(fmt::format("{}, {}, on {}", report.job, report.policy, report.cluster)) + "\n\n";
  Table table({{"rank"}, {"part", Align::left}, {"duration"}, {"live peak"}, {"checkpoint"}});
  for (const PartTimes& part : report.parts)
    table.add_row({fmt::format("{}", part.rank), part.part, format_seconds(part.duration), format_bytes(part.live_peak),
                   part.stored.value > 0 ? format_bytes(part.stored) : "-"});
  append_table(text, table, style);
  if (!report.storage_known)
    text += "\nThe cluster says no rate of its storage: reading and writing checkpoints is counted as no time.\n";
  return text;
}

std::string to_json(const LifeTimes& report) {
  using Json = nlohmann::ordered_json;
  Json json = answer_head("life");
  json["job"] = report.job;
  json["policy"] = report.policy;
  json["cluster"] = report.cluster;
  json["storage_known"] = report.storage_known;
  json["parts"] = Json::array();
  for (const PartTimes& part : report.parts)
    json["parts"].push_back({{"rank", part.rank},
                             {"part", part.part},
                             {"duration_seconds", part.duration.value},
                             {"live_peak_bytes", part.live_peak.value},
                             {"stored_bytes", part.stored.value}});
  json["ebb_version"] = report.ebb_version;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ebb::reports
