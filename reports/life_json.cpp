// The phases of a life in JSON: in `ebb simulate` and in `ebb explain`.
#include "reports/answer_json.hpp"
#include "reports/answer_json_parts.hpp"

namespace ebb::reports {

namespace {

Json json_of(const Phase& phase, bool with_terms) {
  Json json;
  json["name"] = phase.name;
  json["variant"] = phase.variant;
  json["later"] = phase.later;
  json["in_step"] = phase.in_step;
  json["seconds"] = phase.duration.value;
  json["exposed_seconds"] = phase.exposed.value;
  json["stored_bytes"] = phase.stored.value;
  json["storage_known"] = phase.storage_known;
  json["rank"] = phase.rank;
  json["device_peak_bytes"] = phase.device_peak.value;
  json["device_reserved_likely_bytes"] = phase.device_reserved_likely.value;
  json["device_reserved_bytes"] = phase.device_reserved.value;
  json["device_upper_bytes"] = phase.device_upper.value;
  json["uncertainty"] = json_of(phase.uncertainty);
  json["device_allocated_after_bytes"] = phase.allocated_after.value;
  json["device_reserved_after_bytes"] = phase.reserved_after.value;
  json["host_pinned_bytes"] = phase.host_pinned.value;
  json["host_pageable_bytes"] = phase.host_pageable.value;
  json["host_pinned_bytes_per_host"] = phase.host_pinned_per_host.value;
  json["host_pageable_bytes_per_host"] = phase.host_pageable_per_host.value;
  json["host_pinned_bytes_per_node"] = Json::array();
  for (const Bytes node : phase.host_pinned_per_node) json["host_pinned_bytes_per_node"].push_back(node.value);
  if (!with_terms) return json;
  json["terms"] = Json::array();
  for (const PeakTerm& term : phase.terms)
    json["terms"].push_back({{"name", term.name}, {"bytes", term.bytes.value}, {"origin", term.origin}});
  return json;
}

}  // namespace

Json json_of(const std::vector<Phase>& phases, bool with_terms) {
  Json list = Json::array();
  for (const Phase& phase : phases) list.push_back(json_of(phase, with_terms));
  return list;
}

}  // namespace ebb::reports
