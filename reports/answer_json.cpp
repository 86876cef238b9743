#include "reports/answer_json.hpp"

#include "reports/answer_json_parts.hpp"

namespace ebb::reports {

namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Json json_of(const std::vector<NamedBytes>& terms) {
  Json list = Json::array();
  for (const NamedBytes& term : terms) list.push_back({{"name", term.name}, {"bytes", term.bytes.value}});
  return list;
}

Json json_of(const Candidate& c) {
  Json json;
  json["policy"] = c.policy;
  json["chunk_numel"] = c.chunk_numel ? Json(c.chunk_numel->value) : Json(nullptr);
  json["chunk_size_mb"] = or_null(c.chunk_size_mb);
  json["fraction"] = or_null(c.fraction);
  json["slots"] = or_null(c.slots);
  json["cap_bytes"] = c.cap ? Json(c.cap->value) : Json(nullptr);
  json["live_cap_bytes"] = c.live_cap.value > 0 ? Json(c.live_cap.value) : Json(nullptr);
  json["flags"] = c.flags;
  json["forms"] = Json::object();
  for (const PasteForm& form : c.forms) json["forms"][form.format] = {{"lines", form.lines}, {"notes", form.notes}};
  json["requires"] = c.requirement;
  json["deployable"] = c.deployable;
  json["feasible"] = c.feasible;
  json["device_peak_bytes"] = c.device_peak.value;
  json["device_reserved_bytes"] = c.device_reserved.value;
  json["device_reserved_likely_bytes"] = c.device_reserved_likely.value;
  json["deciding_phase"] = c.deciding_phase;
  json["device_resume_bytes"] = c.device_resume.value;
  json["device_between_steps_bytes"] = c.device_between_steps.value;
  json["host_pinned_bytes_per_rank"] = c.host_pinned_per_rank.value;
  json["host_pinned_bytes_per_host"] = c.host_pinned_per_host.value;
  json["host_pinned_bytes_per_socket"] = c.host_pinned_per_socket.value;
  json["host_pageable_bytes_per_host"] = c.host_pageable_per_host.value;
  json["host_deciding_phase"] = c.host_deciding_phase;
  json["optimizer_seconds"] = c.optimizer.value;
  json["step_seconds"] = c.step.value;
  json["slowdown"] = c.slowdown;
  json["first_step_seconds"] = c.first_step.value;
  json["second_step_seconds"] = c.second_step.value;
  json["first_steps_pinned_bytes"] = c.first_steps_pinned.value;
  json["reason"] = c.reason;
  json["device_terms"] = json_of(c.device_terms);
  return json;
}

void append(Json& json, const Header& header) {
  json["job"] = header.job;
  json["model"] = header.model;
  json["cluster"] = header.cluster;
  json["gpus"] = header.gpus;
  json["gpus_per_host"] = header.gpus_per_host;
  json["device_budget_bytes"] = header.device_budget.value;
  json["host_budget_bytes"] = header.host_budget.value;
  json["compute_source"] = header.compute_measured ? "job" : "roofline";
  json["cluster_defaults"] = header.cluster_defaults;
  json["ebb_version"] = header.ebb_version;
}

std::string finish(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string to_json(const PlanReport& report) {
  Json json = answer_head("plan");
  json["recommendation"] = report.recommended ? json_of(report.candidates[*report.recommended]) : Json(nullptr);
  json["candidates"] = Json::array();
  for (const Candidate& candidate : report.candidates) json["candidates"].push_back(json_of(candidate));
  json["objective"] = report.objective;
  json["worst_case"] = report.worst_case;
  json["front"] = Json::array();
  for (const Candidate& candidate : report.front) json["front"].push_back(json_of(candidate));
  if (!report.recommended) {
    json["shortfall"] = report.shortfall;
    json["cures"] = report.cures;
  }
  append(json, report.header);
  return finish(json);
}

std::string to_json(const SimulateReport& report) {
  Json json = answer_head("simulate");
  json.update(json_of(report.candidate));
  json["phases"] = json_of(report.phases, false);
  json["host_limits"] = report.host_limits;
  json["worst_case"] = report.worst_case;
  append(json, report.header);
  return finish(json);
}

std::string to_json(const LayoutReport& report) {
  Json json = answer_head("layout");
  json["rank"] = report.rank;
  json["coordinates"] = report.coordinates;
  json["owned_numel"] = report.owned.value;
  json["largest_shard_numel"] = report.largest_shard.value;
  json["shards"] = Json::array();
  for (const LayoutShard& shard : report.shards)
    json["shards"].push_back({{"name", shard.name},
                              {"numel", shard.numel.value},
                              {"bucket", shard.bucket},
                              {"group", shard.group},
                              {"optimizer", shard.optimizer},
                              {"offset", shard.offset.value}});
  json["buckets"] = Json::array();
  for (const LayoutBucket& bucket : report.buckets)
    json["buckets"].push_back({{"start", bucket.start.value},
                               {"numel", bucket.numel.value},
                               {"group", bucket.group},
                               {"buffer", bucket.buffer},
                               {"unpadded_numel", bucket.unpadded.value}});
  if (report.chunks) {
    json["chunks"] = Json::array();
    for (const LayoutChunk& chunk : *report.chunks)
      json["chunks"].push_back({{"numel", chunk.numel.value}, {"shards", chunk.shards}});
  } else {
    json["chunks"] = nullptr;
  }
  append(json, report.header);
  return finish(json);
}

}  // namespace ebb::reports
