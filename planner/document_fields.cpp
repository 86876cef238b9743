#include "planner/document_fields.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace ebb::cli {

namespace {

constexpr std::int64_t kMostCount = std::int64_t{1} << 60;  // an EiB; no cluster holds more
constexpr double kMostSeconds = 1e9;                        // 31 years
constexpr double kMostRate = 1e18;                          // an EB/s
constexpr double kMostNumber = 1e9;                         // of ratios and per cent

double between(const JsonValue& json, double least, double most) {
  const double number = json.number();
  // Written so that what is no number is refused as well.
  if (!(number >= least && number <= most))
    json.reject(fmt::format("expected a number from {:g} to {:g}, found {:g}", least, most, number));
  return number;
}

}  // namespace

void read(const JsonValue& json, std::string& text) { text = json.text(); }
void read(const JsonValue& json, bool& word) { word = json.boolean(); }
void read(const JsonValue& json, int& count) {
  count = static_cast<int>(json.integer(0, std::numeric_limits<int>::max()));
}
void read(const JsonValue& json, std::int64_t& count) { count = json.integer(0, kMostCount); }
void read(const JsonValue& json, std::size_t& count) { count = static_cast<std::size_t>(json.integer(0, kMostCount)); }
void read(const JsonValue& json, double& number) { number = between(json, 0, kMostNumber); }
void read(const JsonValue& json, Bytes& bytes) { read(json, bytes.value); }
void read(const JsonValue& json, Numel& numel) { read(json, numel.value); }
void read(const JsonValue& json, Seconds& seconds) { seconds.value = between(json, 0, kMostSeconds); }
void read(const JsonValue& json, BytesPerSecond& rate) { rate.value = between(json, 0, kMostRate); }

const Fields& Fields::difference(const char* key, Seconds& seconds) const {
  seconds.value = between(json_->at(key), -kMostSeconds, kMostSeconds);
  return *this;
}

void read(const JsonValue& json, reports::NamedBytes& named) {
  Fields(json).key("name", named.name).key("bytes", named.bytes);
}

void read(const JsonValue& json, reports::Candidate& c) {
  Fields(json)
      .key("policy", c.policy)
      .key("chunk_numel", c.chunk_numel)
      .key("chunk_size_mb", c.chunk_size_mb)
      .key("fraction", c.fraction)
      .key("slots", c.slots)
      .key("cap_bytes", c.cap)
      .key("flags", c.flags)
      .key("requires", c.requirement)
      .key("deployable", c.deployable)
      .key("feasible", c.feasible);
  Fields(json)
      .key("device_peak_bytes", c.device_peak)
      .key("device_reserved_bytes", c.device_reserved)
      .key("device_reserved_likely_bytes", c.device_reserved_likely)
      .key("deciding_phase", c.deciding_phase)
      .key("device_resume_bytes", c.device_resume)
      .key("device_between_steps_bytes", c.device_between_steps)
      .key("device_terms", c.device_terms);
  Fields(json)
      .key("host_pinned_bytes_per_rank", c.host_pinned_per_rank)
      .key("host_pinned_bytes_per_host", c.host_pinned_per_host)
      .key("host_pageable_bytes_per_host", c.host_pageable_per_host)
      .key("host_deciding_phase", c.host_deciding_phase);
  Fields(json)
      .key("optimizer_seconds", c.optimizer)
      .key("step_seconds", c.step)
      .key("slowdown", c.slowdown)
      .key("first_step_seconds", c.first_step)
      .key("second_step_seconds", c.second_step)
      .key("first_steps_pinned_bytes", c.first_steps_pinned)
      .key("reason", c.reason);
}

void read(const JsonValue& json, reports::Header& h) {
  std::string compute;
  Fields(json)
      .key("job", h.job)
      .key("ebb_version", h.ebb_version)
      .key("model", h.model)
      .key("cluster", h.cluster)
      .key("gpus", h.gpus)
      .key("gpus_per_host", h.gpus_per_host)
      .key("device_budget_bytes", h.device_budget)
      .key("host_budget_bytes", h.host_budget)
      .key("compute_source", compute)
      .key("cluster_defaults", h.cluster_defaults);
  if (h.gpus < 1) json.at("gpus").reject("a job has at least one");
  if (h.gpus_per_host < 1) json.at("gpus_per_host").reject("a host has at least one");
  h.compute_measured = compute == "job";
}

void read(const JsonValue& json, reports::PeakTerm& term) {
  Fields(json).key("name", term.name).key("bytes", term.bytes).key("origin", term.origin);
}

void read(const JsonValue& json, reports::Phase& p) {
  Fields(json)
      .key("name", p.name)
      .key("variant", p.variant)
      .key("later", p.later)
      .key("in_step", p.in_step)
      .key("rank", p.rank)
      .key("seconds", p.duration)
      .key("exposed_seconds", p.exposed)
      .key("stored_bytes", p.stored)
      .key("storage_known", p.storage_known);
  Fields(json)
      .key("device_peak_bytes", p.device_peak)
      .key("device_reserved_likely_bytes", p.device_reserved_likely)
      .key("device_reserved_bytes", p.device_reserved)
      .key("device_upper_bytes", p.device_upper)
      .key("device_allocated_after_bytes", p.allocated_after)
      .key("device_reserved_after_bytes", p.reserved_after)
      .key("uncertainty", p.uncertainty)
      .or_nothing("terms", p.terms);
  Fields(json)
      .key("host_pinned_bytes", p.host_pinned)
      .key("host_pageable_bytes", p.host_pageable)
      .key("host_pinned_bytes_per_host", p.host_pinned_per_host)
      .key("host_pageable_bytes_per_host", p.host_pageable_per_host);
}

}  // namespace ebb::cli
