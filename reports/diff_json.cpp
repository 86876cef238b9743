#include "reports/diff_json.hpp"

#include <nlohmann/json.hpp>

#include "reports/answer_head.hpp"

namespace ebb::reports {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const DiffTime& t) {
  return {{"predicted_seconds", t.predicted.value},     {"measured_seconds", t.measured.value},
          {"measured_least_seconds", t.least.value},    {"measured_most_seconds", t.most.value},
          {"difference_seconds", t.difference().value}, {"relative", t.relative()}};
}

Json json_of(const std::optional<BytesPerSecond>& rate) { return rate ? Json(rate->value) : Json(nullptr); }

Json json_of(const DiffClass& c, double all) {
  return {{"name", c.name},
          {"ops", c.ops},
          {"bytes", c.bytes.value},
          {"busy_predicted_seconds", c.busy_predicted.value},
          {"busy_measured_seconds", c.busy_measured.value},
          {"rate_predicted", json_of(c.rate_predicted)},
          {"rate_measured", json_of(c.rate_measured)},
          {"exposed_predicted_seconds", c.exposed_predicted.value},
          {"exposed_measured_seconds", c.exposed_measured.value},
          {"difference_seconds", c.difference().value},
          {"share", all == 0 ? Json(nullptr) : Json(c.difference().value / all)}};
}

Json json_of(const DiffBytes& bytes) {
  return {{"name", bytes.name}, {"predicted_bytes", bytes.predicted.value}, {"measured_bytes", bytes.measured.value}};
}

Json figures(const std::vector<std::pair<std::string, Bytes>>& list) {
  Json json = Json::array();
  for (const auto& [name, bytes] : list) json.push_back({{"name", name}, {"bytes", bytes.value}});
  return json;
}

Json json_of(const DiffMemory& memory) {
  Json json;
  json["live_equal"] = memory.live_equal();
  json["live_peak_predicted_bytes"] = memory.live_predicted.value;
  json["live_peak_measured_bytes"] = memory.live_measured.value;
  json["live_by_phase"] = Json::array();
  for (const DiffBytes& phase : memory.live_by_phase) json["live_by_phase"].push_back(json_of(phase));
  json["host"] = Json::array();
  for (const DiffBytes& host : memory.host) json["host"].push_back(json_of(host));
  json["of_run"] = figures(memory.of_run);
  json["forecast"] = figures(memory.forecast);
  return json;
}

Json json_of(const DiffRank& rank) {
  Json json;
  json["rank"] = rank.rank;
  json["repeats"] = rank.repeats;
  json["verdict"] = rank.verdict;
  json["step"] = json_of(rank.step);
  json["optimizer_step"] = json_of(rank.update);
  json["phases"] = Json::array();
  for (const DiffPhase& phase : rank.phases)
    json["phases"].push_back({{"name", phase.name},
                              {"predicted_seconds", phase.predicted.value},
                              {"measured_seconds", phase.measured.value}});
  double all = 0;
  for (const DiffClass& c : rank.classes) all += c.difference().value;
  json["classes"] = Json::array();
  for (const DiffClass& c : rank.classes) json["classes"].push_back(json_of(c, all));
  json["memory"] = json_of(rank.memory);
  return json;
}

}  // namespace

std::string to_json(const DiffReport& report) {
  Json json = answer_head("diff");
  json["verdict"] = report.decides().verdict;
  json["failures"] = report.failures;
  json["fail_above"] = report.fail_above;
  json["slowest_rank"] = report.decides().rank;
  json["job"] = report.job;
  json["candidate"] = report.candidate;
  json["cluster"] = report.cluster;
  json["predicted_file"] = report.predicted_file;
  json["measured_file"] = report.measured_file;
  json["measured_source"] = report.measured_source;
  json["provenance"] = Json::array();
  for (const auto& [name, value] : report.provenance) json["provenance"].push_back({{"name", name}, {"value", value}});
  json["ranks"] = Json::array();
  for (const DiffRank& rank : report.ranks) json["ranks"].push_back(json_of(rank));
  json["ebb_version"] = report.ebb_version;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ebb::reports
