#include "planner/html_documents.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "models/json_fields.hpp"

namespace ebb::cli {

namespace {

using reports::Candidate;
using reports::DiffClass;
using reports::DiffRank;
using reports::DiffTime;
using reports::NamedBytes;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::int64_t whole(const JsonValue& json, const char* key) { return json.at(key).integer(-kMost, kMost); }
Bytes bytes(const JsonValue& json, const char* key) { return {whole(json, key)}; }
Seconds seconds(const JsonValue& json, const char* key) { return {json.at(key).number()}; }
std::string text(const JsonValue& json, const char* key) { return json.at(key).text(); }

template <class Read>
auto optional(const JsonValue& json, const char* key, Read read) {
  using Value = decltype(read(json.at(key)));
  return json.at(key).is_null() ? std::optional<Value>() : std::optional<Value>(read(json.at(key)));
}

template <class Read>
auto list(const JsonValue& json, const char* key, Read read) {
  std::vector<decltype(read(json.at(key)))> values;
  const JsonValue items = json.at(key);
  for (std::size_t i = 0; i < items.size(); ++i) values.push_back(read(items[i]));
  return values;
}

std::string text_of(const JsonValue& json) { return json.text(); }
NamedBytes named_bytes(const JsonValue& json) { return {text(json, "name"), bytes(json, "bytes")}; }
std::int64_t integer(const JsonValue& json) { return json.integer(-kMost, kMost); }

Candidate candidate(const JsonValue& json) {
  Candidate c;
  c.policy = text(json, "policy");
  c.chunk_numel = optional(json, "chunk_numel", [](const JsonValue& v) { return Numel{integer(v)}; });
  c.chunk_size_mb = optional(json, "chunk_size_mb", integer);
  c.fraction = optional(json, "fraction", [](const JsonValue& v) { return v.number(); });
  c.slots = optional(json, "slots", [](const JsonValue& v) { return static_cast<int>(v.integer(0, 1 << 20)); });
  if (json.has("cap_bytes")) c.cap = bytes(json, "cap_bytes");
  c.flags = list(json, "flags", text_of);
  c.requirement = text(json, "requires");
  c.deployable = json.at("deployable").boolean();
  c.feasible = json.at("feasible").boolean();
  c.device_peak = bytes(json, "device_peak_bytes");
  c.device_reserved = bytes(json, "device_reserved_bytes");
  c.device_reserved_likely = bytes(json, "device_reserved_likely_bytes");
  c.deciding_phase = text(json, "deciding_phase");
  c.device_resume = bytes(json, "device_resume_bytes");
  c.device_between_steps = bytes(json, "device_between_steps_bytes");
  c.device_terms = list(json, "device_terms", named_bytes);
  c.host_pinned_per_rank = bytes(json, "host_pinned_bytes_per_rank");
  c.host_pinned_per_host = bytes(json, "host_pinned_bytes_per_host");
  c.host_pageable_per_host = bytes(json, "host_pageable_bytes_per_host");
  c.optimizer = seconds(json, "optimizer_seconds");
  c.step = seconds(json, "step_seconds");
  c.slowdown = json.at("slowdown").number();
  c.first_step = seconds(json, "first_step_seconds");
  c.second_step = seconds(json, "second_step_seconds");
  c.first_steps_pinned = bytes(json, "first_steps_pinned_bytes");
  c.reason = text(json, "reason");
  return c;
}

reports::Header header(const JsonValue& json) {
  reports::Header h;
  h.job = text(json, "job");
  h.ebb_version = text(json, "ebb_version");
  h.model = text(json, "model");
  h.cluster = text(json, "cluster");
  h.gpus = whole(json, "gpus");
  h.gpus_per_host = whole(json, "gpus_per_host");
  h.device_budget = bytes(json, "device_budget_bytes");
  h.host_budget = bytes(json, "host_budget_bytes");
  h.compute_measured = text(json, "compute_source") == "job";
  h.cluster_defaults = list(json, "cluster_defaults", text_of);
  return h;
}

reports::Phase phase(const JsonValue& json) {
  reports::Phase p;
  p.name = text(json, "name");
  p.variant = text(json, "variant");
  p.later = json.at("later").boolean();
  p.in_step = json.at("in_step").boolean();
  p.rank = whole(json, "rank");
  p.duration = seconds(json, "seconds");
  p.exposed = seconds(json, "exposed_seconds");
  p.stored = bytes(json, "stored_bytes");
  p.storage_known = json.at("storage_known").boolean();
  p.device_peak = bytes(json, "device_peak_bytes");
  p.device_reserved_likely = bytes(json, "device_reserved_likely_bytes");
  p.device_reserved = bytes(json, "device_reserved_bytes");
  p.device_upper = bytes(json, "device_upper_bytes");
  p.allocated_after = bytes(json, "device_allocated_after_bytes");
  p.reserved_after = bytes(json, "device_reserved_after_bytes");
  p.uncertainty = list(json, "uncertainty", named_bytes);
  p.host_pinned = bytes(json, "host_pinned_bytes");
  p.host_pageable = bytes(json, "host_pageable_bytes");
  p.host_pinned_per_host = bytes(json, "host_pinned_bytes_per_host");
  p.host_pageable_per_host = bytes(json, "host_pageable_bytes_per_host");
  return p;
}

reports::PlanReport plan(const JsonValue& json) {
  reports::PlanReport report;
  report.header = header(json);
  report.candidates = list(json, "candidates", candidate);
  if (json.has("front")) report.front = list(json, "front", candidate);
  if (json.at("recommendation").is_null()) {
    report.shortfall = text(json, "shortfall");
    report.cures = list(json, "cures", text_of);
    return report;
  }
  const Candidate pick = candidate(json.at("recommendation"));
  for (std::size_t i = 0; i < report.candidates.size(); ++i) {
    const Candidate& c = report.candidates[i];
    if (c.policy == pick.policy && c.chunk_numel == pick.chunk_numel && c.chunk_size_mb == pick.chunk_size_mb &&
        c.fraction == pick.fraction && c.slots == pick.slots && c.cap == pick.cap)
      report.recommended = i;
  }
  if (!report.recommended) json.at("recommendation").reject("it is none of the candidates");
  return report;
}

reports::SimulateReport simulate(const JsonValue& json) {
  reports::SimulateReport report;
  report.header = header(json);
  report.candidate = candidate(json);
  report.phases = list(json, "phases", phase);
  report.host_limits = list(json, "host_limits", text_of);
  return report;
}

DiffTime diff_time(const JsonValue& json) {
  return {seconds(json, "predicted_seconds"), seconds(json, "measured_seconds"),
          seconds(json, "measured_least_seconds"), seconds(json, "measured_most_seconds")};
}

DiffClass diff_class(const JsonValue& json) {
  const auto rate = [](const JsonValue& v) { return BytesPerSecond{v.number()}; };
  DiffClass c;
  c.name = text(json, "name");
  c.ops = whole(json, "ops");
  c.bytes = bytes(json, "bytes");
  c.busy_predicted = seconds(json, "busy_predicted_seconds");
  c.busy_measured = seconds(json, "busy_measured_seconds");
  c.rate_predicted = optional(json, "rate_predicted", rate);
  c.rate_measured = optional(json, "rate_measured", rate);
  c.exposed_predicted = seconds(json, "exposed_predicted_seconds");
  c.exposed_measured = seconds(json, "exposed_measured_seconds");
  return c;
}

reports::DiffBytes diff_bytes(const JsonValue& json) {
  return {text(json, "name"), bytes(json, "predicted_bytes"), bytes(json, "measured_bytes")};
}

std::pair<std::string, Bytes> figure(const JsonValue& json) { return {text(json, "name"), bytes(json, "bytes")}; }

DiffRank diff_rank(const JsonValue& json) {
  DiffRank rank;
  rank.rank = whole(json, "rank");
  rank.repeats = static_cast<std::size_t>(json.at("repeats").integer(1, kMost));
  rank.verdict = text(json, "verdict");
  rank.step = diff_time(json.at("step"));
  rank.update = diff_time(json.at("optimizer_step"));
  rank.phases = list(json, "phases", [](const JsonValue& v) {
    return reports::DiffPhase{text(v, "name"), seconds(v, "predicted_seconds"), seconds(v, "measured_seconds")};
  });
  rank.classes = list(json, "classes", diff_class);
  const JsonValue memory = json.at("memory");
  rank.memory.live_predicted = bytes(memory, "live_peak_predicted_bytes");
  rank.memory.live_measured = bytes(memory, "live_peak_measured_bytes");
  rank.memory.live_by_phase = list(memory, "live_by_phase", diff_bytes);
  rank.memory.host = list(memory, "host", diff_bytes);
  rank.memory.of_run = list(memory, "of_run", figure);
  rank.memory.forecast = list(memory, "forecast", figure);
  return rank;
}

reports::DiffReport diff(const JsonValue& json) {
  reports::DiffReport report;
  report.failures = list(json, "failures", text_of);
  report.fail_above = json.at("fail_above").number();
  report.job = text(json, "job");
  report.candidate = text(json, "candidate");
  report.cluster = text(json, "cluster");
  report.predicted_file = text(json, "predicted_file");
  report.measured_file = text(json, "measured_file");
  report.measured_source = text(json, "measured_source");
  report.provenance =
      list(json, "provenance", [](const JsonValue& v) { return std::pair(text(v, "name"), text(v, "value")); });
  report.ranks = list(json, "ranks", diff_rank);
  report.ebb_version = text(json, "ebb_version");
  const std::int64_t slowest = whole(json, "slowest_rank");
  for (report.slowest = 0; report.slowest < report.ranks.size(); ++report.slowest)
    if (report.decides().rank == slowest) return report;
  json.at("slowest_rank").reject("it is none of the ranks");
}

bool is_answer(const Json& json) {
  const Json& format = json.at("format");
  return format.is_string() && format.get_ref<const std::string&>().starts_with("ebb-answer-");
}

}  // namespace

HtmlDocument document_from_json(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file, "give documents that ebb plan, simulate or diff printed with --json");
  const JsonValue document(json, "", file);
  if (json.is_object() && json.contains("format") && !is_answer(json)) return timeline_file_from_json(text, file);
  if (json.is_object() && json.contains("recommendation")) return plan(document);
  if (json.is_object() && json.contains("predicted_file")) return diff(document);
  if (json.is_object() && json.contains("host_limits")) return simulate(document);
  document.reject("this is nothing that a page shows",
                  "give timelines, and what ebb plan, ebb simulate JOB or ebb diff print with --json");
}

}  // namespace ebb::cli
