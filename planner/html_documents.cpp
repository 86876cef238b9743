#include "planner/html_documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/document_fields.hpp"
#include "planner/fit.hpp"
#include "reports/answer_head.hpp"

namespace ebb::cli {

namespace {

using reports::Candidate;

bool same_schedule(const Candidate& a, const Candidate& b) {
  return a.policy == b.policy && a.chunk_numel == b.chunk_numel && a.chunk_size_mb == b.chunk_size_mb &&
         a.fraction == b.fraction && a.slots == b.slots && a.cap == b.cap;
}

HtmlDocument plan(const JsonValue& json) {
  reports::PlanReport report;
  read(json, report.header);
  Fields(json).key("candidates", report.candidates).or_nothing("front", report.front);
  if (json.at("recommendation").is_null()) {
    Fields(json).key("shortfall", report.shortfall).key("cures", report.cures);
    return report;
  }
  Candidate pick;
  Fields(json).key("recommendation", pick);
  for (std::size_t i = 0; i < report.candidates.size(); ++i)
    if (same_schedule(report.candidates[i], pick)) report.recommended = i;
  if (!report.recommended) json.at("recommendation").reject("it is none of the candidates");
  return report;
}

HtmlDocument simulate(const JsonValue& json) {
  reports::SimulateReport report;
  read(json, report.header);
  read(json, report.candidate);
  Fields(json).key("phases", report.phases).key("host_limits", report.host_limits);
  return report;
}

HtmlDocument diff(const JsonValue& json) {
  reports::DiffReport report;
  std::int64_t slowest = 0;
  Fields(json)
      .key("failures", report.failures)
      .key("fail_above", report.fail_above)
      .key("job", report.job)
      .key("candidate", report.candidate)
      .key("cluster", report.cluster)
      .key("predicted_file", report.predicted_file)
      .key("measured_file", report.measured_file)
      .key("measured_source", report.measured_source)
      .key("provenance", report.provenance)
      .key("ranks", report.ranks)
      .key("ebb_version", report.ebb_version)
      .key("slowest_rank", slowest);
  if (report.measured_source != "measured")
    json.at("measured_source")
        .reject("these are two predictions, and no run", "compare with what ebb-replay run wrote");
  for (report.slowest = 0; report.slowest < report.ranks.size(); ++report.slowest)
    if (report.decides().rank == slowest) return report;
  json.at("slowest_rank").reject("it is none of the ranks");
}

HtmlDocument fit(const JsonValue& json) {
  reports::FitReport report;
  read(json, report.header);
  Fields(json)
      .key("goal", report.goal)
      .key("largest", report.largest)
      .key("own", report.own)
      .key("step", report.step)
      .key("limits", report.limits)
      .key("notes", report.notes);
  if (!fit_goal_named(report.goal)) json.at("goal").reject("this is no goal of ebb fit");
  if (report.limits.empty()) json.at("limits").reject("there are none");
  return report;
}

HtmlDocument sweep(const JsonValue& json) {
  reports::SweepReport report;
  Fields(json)
      .key("job", report.job)
      .key("ebb_version", report.ebb_version)
      .key("keys", report.keys)
      .key("rows", report.rows);
  const JsonValue rows = json.at("rows");
  for (std::size_t i = 0; i < report.rows.size(); ++i)
    if (report.rows[i].values.size() != report.keys.size())
      rows[i].at("values").reject(fmt::format("expected one for each of {} keys", report.keys.size()));
  return report;
}

HtmlDocument explain(const JsonValue& json) {
  reports::ExplainReport report;
  read(json, report.header);
  read(json, report.candidate);
  Fields(json)
      .key("chosen", report.chosen)
      .key("phase", report.phase)
      .key("phases", report.phases)
      .key("explanation", report.explanation);
  return report;
}

struct Reader {
  std::string_view name;
  HtmlDocument (*read)(const JsonValue& json);
};
constexpr Reader kReaders[] = {{"plan", plan}, {"simulate", simulate}, {"diff", diff},
                               {"fit", fit},   {"sweep", sweep},       {"explain", explain}};

constexpr const char* kCure =
    "give timelines, and what ebb plan, simulate, diff, fit, sweep or explain print with --json";
constexpr const char* kPlanCure =
    "give its timeline (ebb simulate JOB --timeline FILE, ebb-replay run PLAN -o FILE) or what ebb simulate JOB --json "
    "prints";

}  // namespace

HtmlDocument document_from_json(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file, kCure);
  const JsonValue document(json, "", file);
  if (!json.is_object() || !json.contains("format")) document.reject("this is nothing that a page shows", kCure);
  const std::string format = document.at("format").text();
  constexpr std::string_view kAnswer = "ebb-answer-";
  if (format == "ebb-plan")
    document.at("format").reject("a page shows answers and timelines, and this is a plan", kPlanCure);
  if (!format.starts_with(kAnswer) && format != "ebb-timeline")
    document.at("format").reject(fmt::format("a page does not show \"{}\"", format.substr(0, 40)), kCure);
  if (format == "ebb-timeline") return timeline_file_from_json(text, file);
  const auto* const reader = std::find_if(std::begin(kReaders), std::end(kReaders),
                                          [&](const Reader& one) { return one.name == format.substr(kAnswer.size()); });
  if (reader == std::end(kReaders))
    document.at("format").reject(fmt::format("a page does not show \"{}\"", format.substr(0, 40)), kCure);
  std::int64_t version = 0;
  read(document.at("version"), version);
  if (version != reports::kAnswerVersion)
    document.at("version").reject(
        fmt::format("expected {}, found {}: another Ebb wrote this", reports::kAnswerVersion, version),
        "write it again with this one");
  return reader->read(document);
}

}  // namespace ebb::cli
