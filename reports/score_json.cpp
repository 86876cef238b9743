#include "reports/score_json.hpp"

#include <nlohmann/json.hpp>

#include "reports/answer_head.hpp"

namespace ebb::reports {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::vector<NamedBytes>& terms) {
  Json list = Json::array();
  for (const NamedBytes& term : terms) list.push_back({{"name", term.name}, {"bytes", term.bytes.value}});
  return list;
}

Json to_json(const ScoreCase& c) {
  const auto if_modelled = [&](Json value) { return c.modelled() ? std::move(value) : Json(nullptr); };
  Json json;
  json["id"] = c.id;
  json["predicted_allocated_bytes"] = if_modelled(c.predicted_allocated.value);
  json["recorded_allocated_bytes"] = c.recorded_allocated.value;
  json["allocated_error"] = if_modelled(relative(c.predicted_allocated, c.recorded_allocated));
  json["predicted_peak_bytes"] = if_modelled(c.predicted_peak.value);
  json["recorded_peak_bytes"] = c.recorded_peak.value;
  json["peak_error"] = if_modelled(relative(c.predicted_peak, c.recorded_peak));
  json["predicted_iteration_seconds"] = if_modelled(c.predicted_iteration.value);
  json["recorded_iteration_seconds"] = c.recorded_iteration ? Json(c.recorded_iteration->value) : Json(nullptr);
  json["reason"] = c.modelled() ? Json(nullptr) : Json(c.reason);
  json["traits"] = c.traits;
  json["unheeded_arguments"] = c.unheeded;
  json["terms"] = to_json(c.terms);
  json["peak_terms"] = to_json(c.peak_terms);
  json["allocated_remainder_bytes"] = if_modelled((c.recorded_allocated - c.predicted_allocated).value);
  json["peak_remainder_bytes"] = if_modelled((c.recorded_peak - c.predicted_peak).value);
  return json;
}

Json to_json(const ErrorSummary& s) {
  // Of no case there is no error, not one of 0.
  const auto error = [&](double value) { return s.count > 0 ? Json(value) : Json(nullptr); };
  return {{"cases", s.count},
          {"median", error(s.median)},
          {"p90", error(s.p90)},
          {"worst", error(s.worst)},
          {"bias", error(s.bias)}};
}

}  // namespace

std::string to_json(const ScoreReport& report) {
  Json json = answer_head("score");
  json["cases"] = Json::array();
  for (const ScoreCase& c : report.cases) json["cases"].push_back(to_json(c));
  json["allocated"] = to_json(summarize(allocated_errors(report)));
  json["allocated"]["within_1_percent_or_8_mib"] = allocated_within(report, 0.01, 8_MiB);
  json["allocated"]["within_3_percent_or_40_mib"] = allocated_within(report, 0.03, 40_MiB);
  json["peak"] = to_json(summarize(peak_errors(report)));
  json["iteration"] = to_json(summarize(iteration_errors(report)));
  json["remainders"] = Json::array();
  for (const Remainder& r : remainders(report))
    json["remainders"].push_back({{"trait", r.trait},
                                  {"cases", r.cases},
                                  {"mean_allocated_bytes", r.allocated.value},
                                  {"mean_peak_bytes", r.peak.value}});
  json["file"] = report.file;
  json["ebb_version"] = report.ebb_version;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ebb::reports
