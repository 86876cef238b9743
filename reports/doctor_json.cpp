#include "reports/doctor_json.hpp"

#include <nlohmann/json.hpp>

#include "reports/answer_head.hpp"

namespace ebb::reports {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::optional<PlanNeed>& plan) {
  if (!plan) return nullptr;
  return {{"job", plan->job},
          {"policy", plan->policy.empty() ? Json(nullptr) : Json(plan->policy)},
          {"hosts", plan->hosts},
          {"ranks_per_host", plan->ranks},
          {"pinned_bytes_per_host", plan->pinned.value},
          {"pageable_bytes_per_host", plan->pageable.value},
          {"checkpoint_bytes", plan->checkpoint.value}};
}

}  // namespace

std::string to_json(const DoctorReport& report) {
  Json json = answer_head("doctor");
  json["plan"] = to_json(report.plan);
  json["stands_against_plan"] = report.stands_against();
  json["problems"] = report.count("problem");
  json["notes"] = report.count("note");
  json["findings"] = Json::array();
  for (const HostFinding& finding : report.findings)
    json["findings"].push_back({{"topic", finding.topic},
                                {"verdict", finding.verdict},
                                {"figure", finding.figure},
                                {"consequence", finding.consequence},
                                {"cure", finding.cure}});
  json["ebb_version"] = report.ebb_version;
  // What /proc says may hold bytes that are not UTF-8: they become the replacement character.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ebb::reports
