#include "reports/check_json.hpp"

#include <nlohmann/json.hpp>

#include "reports/answer_head.hpp"

namespace ebb::reports {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::vector<BrokenRule>& list) {
  Json array = Json::array();
  for (const BrokenRule& broken : list)
    array.push_back({{"rule", broken.rule},
                     {"place", broken.place},
                     {"key", broken.key},
                     {"problem", broken.problem},
                     {"reason", broken.reason},
                     {"cure", broken.cure},
                     {"source", broken.source}});
  return array;
}

}  // namespace

std::string to_json(const CheckReport& report) {
  Json json = answer_head("check");
  json["job"] = report.job;
  json["model"] = report.model;
  json["cluster"] = report.cluster;
  json["gpus"] = report.gpus;
  json["megatron"] = report.megatron;
  json["policy"] = report.policy ? Json(*report.policy) : Json(nullptr);
  json["rules"] = report.rules;
  json["violations"] = to_json(report.violations);
  json["policies"] = Json::array();
  for (const PolicyVerdict& verdict : report.policies)
    json["policies"].push_back(
        {{"policy", verdict.policy}, {"ruled_out", !verdict.broken.empty()}, {"because", to_json(verdict.broken)}});
  json["ebb_version"] = report.ebb_version;
  // Text from a user's file may hold bytes that are not UTF-8: they become the replacement character.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ebb::reports
