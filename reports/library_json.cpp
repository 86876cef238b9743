#include <nlohmann/json.hpp>
#include <sstream>

#include "reports/answer_head.hpp"
#include "reports/library.hpp"

namespace ebb::reports {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Fact& fact) {
  const Json value = std::visit([](const auto& v) { return Json(v); }, fact.value);
  if (fact.source.empty()) return value;
  return {{"value", value}, {"source", fact.source}};
}

/// "host_link.h2d" becomes {"host_link": {"h2d": ...}}.
Json json_of(const LibraryEntry& entry) {
  Json json;
  json["name"] = entry.name;
  for (const Fact& fact : entry.facts) {
    Json* at = &json;
    std::istringstream keys(fact.key);
    for (std::string key; std::getline(keys, key, '.');) at = &(*at)[key];
    *at = json_of(fact);
  }
  return json;
}

}  // namespace

std::string to_json(const LibraryReport& report) {
  const std::string one = report.kind == "policies" ? "policy" : report.kind == "models" ? "model" : "cluster";
  Json json = answer_head(report.whole ? one : report.kind);
  if (report.whole) {
    json[one] = json_of(report.entries.front());
  } else {
    json[report.kind] = Json::array();
    for (const LibraryEntry& entry : report.entries) json[report.kind].push_back(json_of(entry));
  }
  json["ebb_version"] = report.ebb_version;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ebb::reports
