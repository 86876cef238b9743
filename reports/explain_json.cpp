// The document of `ebb explain`.
#include "reports/answer_json.hpp"
#include "reports/answer_json_parts.hpp"
#include "reports/explain.hpp"

namespace ebb::reports {

namespace {

const char* name_of(Tide::Limit limit) {
  switch (limit) {
    case Tide::Limit::nothing:
      return "nothing";
    case Tide::Limit::link:
      return "link";
    case Tide::Limit::valley:
      return "valley";
    case Tide::Limit::cap:
      return "cap";
    case Tide::Limit::second_pass:
      return "second-pass";
  }
  return "";
}

Json json_of(const PathSegment& segment) {
  return {{"phase", segment.phase},           {"what", segment.what},
          {"stream", segment.stream},         {"waited_for", segment.waited_for},
          {"operations", segment.operations}, {"seconds", segment.time.value},
          {"percent", segment.percent}};
}

Json json_of(const PathOperation& step) {
  return {{"op", step.op},
          {"phase", step.phase},
          {"what", step.what},
          {"stream", step.stream},
          {"start_seconds", step.start.value},
          {"end_seconds", step.end.value},
          {"waited_for", step.waited_for},
          {"waited_seconds", step.waited.value}};
}

Json json_of(const ShardLimit& shard) {
  Json json = {{"parameter", shard.parameter},
               {"rank", shard.rank},
               {"largest_numel", shard.largest.value},
               {"window_bytes", shard.window.value},
               {"chunk", shard.chunk},
               {"decides", shard.decides},
               {"cut", shard.cut},
               {"explanation", shard.explanation}};
  json["levers"] = Json::array();
  for (const ShardLimit::Lever& lever : shard.levers)
    json["levers"].push_back({{"argument", lever.argument}, {"largest_numel", lever.largest.value}});
  json["without_effect"] = shard.without_effect;
  return json;
}

Json json_of(const Tide& tide) {
  Json parts = Json::array();
  for (const TidePart& part : tide.parts) parts.push_back({{"phase", part.phase}, {"seconds", part.time.value}});
  return {{"rank", tide.rank},
          {"piece_numel", tide.piece.value},
          {"step_seconds", tide.step.value},
          {"device_peak_bytes", tide.peak.value},
          {"exposed_seconds", tide.exposed.value},
          {"parts", parts},
          {"bound_seconds", tide.bound.value},
          {"even_bound_seconds", tide.even_bound.value},
          {"state_bytes", tide.state.value},
          {"kept_bytes", tide.kept.value},
          {"in_bytes", tide.in.value},
          {"out_bytes", tide.out.value},
          {"room_bytes", tide.room.value},
          {"cap_bytes", tide.cap.value},
          {"limit", name_of(tide.limit)}};
}

Json json_of(const WhatIf& what_if) {
  Json json = {{"change", what_if.change},
               {"recommendation", what_if.recommendation},
               {"flags", what_if.flags},
               {"differs", what_if.differs}};
  json["step_seconds"] = what_if.step ? Json(what_if.step->value) : Json(nullptr);
  json["device_reserved_bytes"] = what_if.needs ? Json(what_if.needs->value) : Json(nullptr);
  json["note"] = what_if.note;
  return json;
}

template <class T>
Json list_of(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(json_of(item));
  return list;
}

Json json_of(const Explanation& e) {
  Json json;
  json["rank"] = e.rank;
  json["step_seconds"] = e.step.value;
  json["segments"] = list_of(e.segments);
  json["path_operations"] = e.path_operations;
  json["path"] = list_of(e.path);
  json["bottleneck"] = {
      {"resource", e.bottleneck.resource}, {"seconds", e.bottleneck.time.value}, {"sentence", e.bottleneck.sentence}};
  json["optimizer_seconds"] = e.optimizer.value;
  json["added_seconds"] = e.added.value;
  json["bounds"] = Json::array();
  for (const LowerBound& bound : e.bounds)
    json["bounds"].push_back({{"name", bound.name}, {"seconds", bound.time.value}, {"origin", bound.origin}});
  json["memory"] = {
      {"least_bytes", e.memory.least.value}, {"peak_bytes", e.memory.peak.value}, {"rank", e.memory.rank}};
  json["neighbours"] = Json::array();
  for (const Neighbour& neighbour : e.neighbours)
    json["neighbours"].push_back(
        {{"change", neighbour.change}, {"verdict", neighbour.verdict}, {"candidate", json_of(neighbour.candidate)}});
  json["shard"] = json_of(e.shard);
  json["tide"] = e.tide ? json_of(*e.tide) : Json(nullptr);
  json["what_ifs"] = list_of(e.what_ifs);
  return json;
}

}  // namespace

std::string to_json(const ExplainReport& report) {
  Json json = answer_head("explain");
  json.update(json_of(report.candidate));
  json["chosen"] = report.chosen;
  json["worst_case"] = report.worst_case;
  json["phase"] = report.phase ? Json(*report.phase) : Json(nullptr);
  json["phases"] = json_of(report.phases, true);
  if (report.phase) {
    json["curve_rank"] = report.curve.rank;
    json["curve_micro_batches"] = report.curve.micro_batches;
    json["micro_batches"] = report.curve.of_micro_batches;
    json["curve"] = Json::array();
    for (const CurvePoint& point : report.curve.points)
      json["curve"].push_back(Json::array({point.at.value, point.bytes.value}));
  }
  json["explanation"] = report.explanation ? json_of(*report.explanation) : Json(nullptr);
  append(json, report.header);
  return finish(json);
}

}  // namespace ebb::reports
