#include "reports/fit_json.hpp"

#include "reports/answer_json_parts.hpp"

namespace ebb::reports {

namespace {

Json json_of(const std::optional<FitPoint>& point) {
  if (!point) return nullptr;
  Json json;
  json["value"] = point->value;
  json["candidate"] = point->candidate ? json_of(*point->candidate) : Json(nullptr);
  json["obstacle"] = point->obstacle;
  json["decides"] = point->decides;
  return json;
}

}  // namespace

std::string to_json(const FitReport& report) {
  Json json = answer_head("fit");
  json["goal"] = report.goal;
  json["largest"] = report.largest;
  json["own"] = report.own;
  json["step"] = report.step;
  json["limits"] = Json::array();
  for (const FitLimit& limit : report.limits)
    json["limits"].push_back(
        {{"offload", limit.offload}, {"fits", json_of(limit.fits)}, {"breaks", json_of(limit.breaks)}});
  json["notes"] = report.notes;
  append(json, report.header);
  return finish(json);
}

}  // namespace ebb::reports
